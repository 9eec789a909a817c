"""Compiled graphs and LangChain agents as participants: history, routing, pauses."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage
from langgraph.types import interrupt

import agent_adapter as aa
from agent_adapter.integrations.discovery import driver_for
from agent_adapter.integrations.langchain import langchain_tool
from agent_adapter.integrations.langgraph import langgraph_tool
from agent_adapter.network.channels.views import ViewMessage
from agent_adapter.network.turns.turn_runner import run_round
from tests.network._turns import FakePort, executor_of, turn_of_ann

from ._langchain_agent import agent_of
from ._langgraph_graph import graph_of, saver

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


@tools.tool
def choose(name: str) -> aa.Handoff:
    """Chooses who is next."""
    return aa.Handoff(name, "chosen")


@tools.tool(confirm=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def _exported(function: Any, executor: Any = None) -> Any:
    return langgraph_tool(aa.spec_of(function), executor=executor or executor_of())


async def _round(agent: Any, **options: Any) -> FakePort:
    port = FakePort()
    driver = driver_for(agent)
    assert driver is not None
    await run_round(agent, turn_of_ann(port, **options), driver.drive)
    return port


async def test_a_graph_answers_the_turn() -> None:
    """The model's last text is the packet's body."""
    assert (await _round(graph_of([], "hello bob"))).body == "hello bob"


async def test_a_graph_sees_the_channel() -> None:
    """What the participant said itself is its own message, all else is a user's."""
    seen: list[Any] = []

    def remember(state: Any) -> Any:
        seen.extend((m.type, m.text) for m in state["messages"])
        return {"messages": [AIMessage("ok")]}

    from langgraph.graph import END, START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("model", remember)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    said = [ViewMessage(text="[bob]: hi"), ViewMessage(text="hello", own=True)]
    await _round(graph.compile(), messages=said)
    assert seen == [("human", "[bob]: hi"), ("ai", "hello"), ("human", "[bob]: hello")]


@pytest.mark.parametrize("kept", [False, True])
async def test_a_tool_routes_the_turn(kept: bool) -> None:
    """A `Handoff` of a tool routes, with or without a checkpointer."""
    graph = graph_of(
        [_exported(choose)], [("c1", "choose", {"name": "bob"})], saver=saver() if kept else None
    )
    port = await _round(graph)
    assert port.routing["kind"] == "handoff"


async def test_a_langchain_agent_takes_part() -> None:
    """What `create_agent` gives is driven like any graph."""
    tool = langchain_tool(aa.spec_of(choose), executor=executor_of())
    port = await _round(agent_of([tool], [("c1", "choose", {"name": "bob"})]))
    assert (port.routing["kind"], port.body) == ("handoff", "done")


@pytest.mark.parametrize("kept", [False, True])
async def test_a_pending_approval_parks_the_turn(kept: bool) -> None:
    """A call that waits for a person: no packet, the turn waits for its record."""
    store = aa.open_store("memory://")
    executor = executor_of(store, approval=aa.DeferredApproval(store))
    graph = graph_of(
        [_exported(pay, executor)], [("c1", "pay", {"amount": 5})], saver=saver() if kept else None
    )
    port = await _round(graph, executor=executor)
    [record] = await aa.Inbox(store).list()
    assert (port.waits_for, port.packets) == ([record.id], [])


async def test_a_parked_turn_goes_on_once() -> None:
    """The next attempt of the turn finds the decision, and its call runs once."""
    store = aa.open_store("memory://")
    executor = executor_of(store, approval=aa.DeferredApproval(store))
    kept = saver()

    async def attempt(number: int) -> FakePort:
        calls = [("c1", "pay", {"amount": 5})]
        graph = graph_of([_exported(pay, executor)], calls, saver=kept)
        return await _round(graph, executor=executor, attempt=number)

    [record] = (await attempt(1)).waits_for
    await aa.Inbox(store).approve(record, reviewer="bob")
    assert (await attempt(2)).body == "done"
    assert (await attempt(3)).body == "done"
    assert [row["ending"] for row in await store.read(lambda tx: tx.select("calls"))] == ["ok"]


async def test_a_graph_that_asks_its_user_fails_the_round() -> None:
    """An interrupt that is no approval cannot be answered in a turn."""

    async def asks(state: Any) -> Any:
        interrupt("which colour?")

    graph = graph_of([], [("c1", "x", {})], node=asks, saver=saver())
    [error] = (await _round(graph)).errors
    assert "confirm=True" in str(error)


async def test_a_graph_cannot_be_given_tools() -> None:
    """The channel's tools cannot be added to a compiled graph: said with the fix."""
    [error] = (await _round(graph_of([], "hi"), tools=[aa.spec_of(choose)])).errors
    assert "attach_plugin=False" in str(error)
