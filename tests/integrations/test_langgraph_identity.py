"""Which call is this, through real LangGraph graphs: the rows of the identity page."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy, Send, interrupt

import agent_adapter as aa
from agent_adapter.integrations.langgraph import langgraph_tools, pending_records

from ._langchain_model import message, scripted
from ._langgraph_graph import error_of, graph_of, resume, run, saver, thread
from ._shop import Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("call_0", "refund", REFUND)


def free(**options: Any) -> Shop:
    """A shop that asks nobody."""
    return Shop(confirm=False, **options)


def tools_of(shop: Shop, **options: Any) -> list[Any]:
    """The shop's tools for LangGraph."""
    return langgraph_tools(shop.registry, executor=shop.executor, **options)


async def runs_of(shop: Shop) -> list[str]:
    """The ledger's run of every call, in order."""
    await shop.store.flush()
    rows = await shop.store.read(lambda tx: tx.select("calls", {}, order_by="started_at"))
    return [row["run_id"] for row in rows]


# New messages


def _added(tools: list[Any]) -> Any:
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], operator.add]

    return State, "messages", None


def _other_key(tools: list[Any]) -> Any:
    class State(TypedDict):
        talk: Annotated[list[AnyMessage], operator.add]

    return State, "talk", None


def _trimmed(tools: list[Any]) -> Any:
    def forget(state: MessagesState) -> Any:
        return [RemoveMessage(id=str(m.id)) for m in state["messages"][:-1]]

    return MessagesState, "messages", forget


@pytest.mark.parametrize("shape", [_added, _other_key, _trimmed])
async def test_i1_each_user_message_makes_its_own_call(shape: Callable[[Any], Any]) -> None:
    """I1: three messages, one id and one set of arguments: three effects, three runs."""
    shop = free()
    state, key, forget = shape(None)

    def model(values: Any) -> Any:
        removed = forget(values) if forget else []
        return {key: [*removed, message([CALL])]}

    graph = StateGraph(state)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(tools_of(shop), messages_key=key))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    built = graph.compile(checkpointer=saver())
    for _ in range(3):
        await built.ainvoke({key: [HumanMessage("go")]}, thread())
    assert shop.refunds == [REFUND] * 3
    assert len(set(await runs_of(shop))) == 3


async def test_the_three_messages_are_one_conversation() -> None:
    """The thread is the conversation; `ctx.run_id` and `ctx.thread_id` keep their values."""
    shop = free()
    graph = graph_of(tools_of(shop), [CALL], "done", [CALL], saver=saver())
    for _ in range(2):
        await run(graph, thread())
    assert {ctx.identity.conversation for ctx in shop.contexts} == {"t1"}
    assert {(ctx.run_id, ctx.thread_id) for ctx in shop.contexts} == {("t1", "t1")}
    assert len({ctx.identity.run for ctx in shop.contexts}) == 2


async def test_the_run_lasts_over_its_pauses() -> None:
    """A run is the checkpoint of the user's input, also after two resumes."""
    shop, kept = Shop(), saver()
    tools = tools_of(shop, approval=aa.DeferredApproval(shop.store))
    graph = graph_of(tools, [CALL], [CALL], saver=kept)
    output = await run(graph, thread())
    for _ in range(2):
        [record] = pending_records(output)
        await aa.Inbox(shop.store).approve(record, reviewer="ann")
        output = await graph.ainvoke(resume(), thread())
    assert shop.refunds == [REFUND] * 2
    [first] = [t async for t in kept.alist(thread(), filter={"source": "input"})]
    found = {ctx.identity.run for ctx in shop.contexts}
    assert found == {first.config["configurable"]["checkpoint_id"]}


# Inner graphs


@pytest.mark.parametrize("inner_saver", [None, False])
async def test_i3_two_sub_agents_with_equal_calls(inner_saver: Any) -> None:
    """I3: in parallel, one id, one set of arguments, `confirm=True`: asked twice, run twice."""
    port, shop = asking(), Shop()
    tools = tools_of(shop, approval=port)
    agents = [graph_of(tools, [CALL], saver=inner_saver) for _ in range(2)]

    async def both(state: MessagesState) -> Any:
        asked = {"messages": [("user", "go")]}
        await asyncio.gather(*(agent.ainvoke(asked) for agent in agents))
        return {"messages": [AIMessage("done")]}

    graph = StateGraph(MessagesState)
    graph.add_node("both", both)
    graph.add_edge(START, "both")
    await run(graph.compile(checkpointer=saver()), thread())
    assert (len(port.requests), shop.refunds) == (2, [REFUND] * 2)


@pytest.mark.parametrize("inner_saver", [None, False])
async def test_an_inner_graph_repeats_no_write_after_a_pause(inner_saver: Any) -> None:
    """One that keeps no checkpoints begins anew: its calls are found by what they are."""
    shop = free()
    agent = graph_of(tools_of(shop), [CALL], [CALL], "done", [CALL], [CALL], saver=inner_saver)

    async def node(state: MessagesState) -> Any:
        await agent.ainvoke({"messages": [("user", "go")]})
        interrupt("go on?")
        return {"messages": [AIMessage("done")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    built = graph.compile(checkpointer=saver())
    await run(built, thread())
    assert shop.refunds == [REFUND] * 2
    await built.ainvoke(resume(), thread())
    assert shop.refunds == [REFUND] * 2


async def test_tasks_of_an_entrypoint_are_places() -> None:
    """`@task` and `@entrypoint`: equal calls in two tasks run twice, and not again on resume."""
    shop = free()
    [refund] = [t for t in tools_of(shop) if t.name == "refund"]

    @task
    async def pay(number: int) -> str:
        return str(await refund.ainvoke(REFUND))

    @entrypoint(checkpointer=saver())
    async def work(number: int) -> str:
        paid = [await pay(number), await refund.ainvoke(REFUND), await pay(number)]
        interrupt("go on?")
        return ",".join(paid)

    await work.ainvoke(1, thread())
    await work.ainvoke(resume(), thread())
    assert shop.refunds == [REFUND] * 3


async def test_calls_that_are_sent_are_places() -> None:
    """`Send`: one task per call, equal ones too."""
    shop = free()
    node = ToolNode(tools_of(shop))

    def sends(state: MessagesState) -> Any:
        return [
            Send("tools", [{"name": "refund", "args": REFUND, "id": "call_0", "type": "tool_call"}])
        ] * 2

    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_conditional_edges(START, sends, ["tools"])
    await run(graph.compile(checkpointer=saver()), thread())
    assert shop.refunds == [REFUND] * 2


# The same place again


@pytest.mark.parametrize("kept", [True, False])
async def test_i6_a_retried_node_repeats_no_write(kept: bool) -> None:
    """I6: a retry policy runs the node again, with a checkpointer and without: one effect."""
    shop, fails = free(), [OSError("first time")]
    node = ToolNode(tools_of(shop))

    async def flaky(state: Any) -> Any:
        output = await node.ainvoke(state)
        if fails:
            raise fails.pop()
        return output

    policy = RetryPolicy(retry_on=OSError, jitter=False, initial_interval=0.0)
    graph = graph_of([], [CALL], [CALL], node=flaky, retry=policy, saver=saver() if kept else None)
    await run(graph, thread() if kept else None)
    assert shop.refunds == [REFUND] * 2


@pytest.mark.parametrize("again", ["resume", "retry"])
async def test_i7_a_node_that_calls_tools_by_itself(again: str) -> None:
    """I7: three equal calls without ids, then a pause or a retry: three effects."""
    shop, fails = free(), [OSError("first time")]
    [refund] = [t for t in tools_of(shop) if t.name == "refund"]

    async def node(state: MessagesState, config: Any) -> Any:
        for _ in range(3):
            await refund.ainvoke(REFUND, config)
        if again == "resume":
            interrupt("go on?")
        elif fails:
            raise fails.pop()
        return {"messages": [AIMessage("done")]}

    node.__annotations__ = {"state": MessagesState}
    policy = RetryPolicy(retry_on=OSError, jitter=False, initial_interval=0.0)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node, retry_policy=policy)
    graph.add_edge(START, "node")
    built = graph.compile(checkpointer=saver())
    await run(built, thread())
    if again == "resume":
        await built.ainvoke(resume(), thread())
    assert shop.refunds == [REFUND] * 3


async def test_i7_a_node_whose_own_calls_wait() -> None:
    """A call without an id that waits pauses the graph, and runs once after its yes."""
    shop = Shop()
    tools = tools_of(shop, approval=aa.DeferredApproval(shop.store))
    [refund] = [t for t in tools if t.name == "refund"]

    async def node(state: MessagesState) -> Any:
        return {"messages": [AIMessage(await refund.ainvoke(REFUND))]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    built = graph.compile(checkpointer=saver())
    [record] = pending_records(await run(built, thread()))
    await aa.Inbox(shop.store).approve(record, reviewer="ann")
    await built.ainvoke(resume(), thread())
    assert shop.refunds == [REFUND]


async def test_a_sync_graph_finds_the_same_identity() -> None:
    """`graph.invoke` reads the saver in its own manner: a run per message, a place per call."""
    shop = free()
    graph = graph_of(tools_of(shop), [CALL], "done", [CALL], saver=saver())
    for _ in range(2):
        await asyncio.to_thread(graph.invoke, {"messages": [("user", "go")]}, thread())
    assert shop.refunds == [REFUND] * 2
    assert len(set(await runs_of(shop))) == 2


# Rules kept per run


async def test_i10_a_denial_ends_with_the_users_turn() -> None:
    """I10: denied in one turn, asked for again in the next: asked."""
    shop = Shop()
    tools = tools_of(shop, approval=aa.DeferredApproval(shop.store))
    graph = graph_of(tools, [CALL], "done", [CALL], saver=saver())
    [record] = pending_records(await run(graph, thread()))
    await aa.Inbox(shop.store).deny(record, reviewer="ann", reason="not today")
    output = await graph.ainvoke(resume(), thread())
    assert error_of(output, "call_0")["kind"] == "approval-denied"
    [again] = pending_records(await run(graph, thread()))
    assert again != record


@pytest.mark.parametrize("kept", [True, False])
async def test_i14_limits_hold_for_the_run(kept: bool) -> None:
    """I14: `max_calls=1`, two calls in one run: one runs; the next message has its own."""
    shop = free()
    shop.executor = aa.Executor(shop.registry, store=shop.store, limits=aa.RunLimits(max_calls=1))
    turns = ([CALL], [CALL], "done") * 2
    graph = graph_of(tools_of(shop), *turns, saver=saver() if kept else None)
    for count in (1, 2):
        output = await run(graph, thread() if kept else None)
        assert shop.refunds == [REFUND] * count
        assert error_of(output, "call_0")["kind"] == "run-limit-exceeded"


async def test_i13_labels_hold_without_a_thread() -> None:
    """I13: an untrusted read, then a write that asks when tainted: asked."""
    port, shop = asking(), Shop(confirm="tainted")

    @shop.registry.tool(effects="read", trust="untrusted")
    async def page() -> str:
        """Reads a page."""
        return "text"

    shop.executor = aa.Executor(shop.registry, store=shop.store, approval=port)
    await run(graph_of(tools_of(shop), [("call_0", "page", {})], [CALL]))
    assert len(port.requests) == 1


# Checkpoints that somebody went back to, or changed


async def test_i24_a_summary_in_mid_run_makes_no_replay() -> None:
    """I24: a finished call is removed from the messages, an equal write follows: it runs."""
    shop, model = free(), scripted([CALL], [CALL], "done")

    def ask(state: MessagesState) -> Any:
        old = [RemoveMessage(id=str(m.id)) for m in state["messages"][1:]]
        return {"messages": [*old, model.invoke(state["messages"])]}

    def route(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools_of(shop)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route, ["tools", "__end__"])
    graph.add_edge("tools", "model")
    await run(graph.compile(checkpointer=saver()), thread())
    assert shop.refunds == [REFUND] * 2
    assert len(set(await runs_of(shop))) == 1


@pytest.mark.parametrize("stop", ["error", "interrupt_before"])
async def test_i24_a_run_that_goes_on_keeps_its_limits(stop: str) -> None:
    """I24: `ainvoke(None)` after a model's error or a breakpoint: the same run and limits."""
    shop = free()
    shop.executor = aa.Executor(shop.registry, store=shop.store, limits=aa.RunLimits(max_calls=1))
    model, fails = scripted([CALL], [CALL], "done"), [OSError("down")]

    def ask(state: MessagesState) -> Any:
        if stop == "error" and len(state["messages"]) == 3 and fails:
            raise fails.pop()
        return {"messages": [model.invoke(state["messages"])]}

    def route(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools_of(shop)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route, ["tools", "__end__"])
    graph.add_edge("tools", "model")
    before = ["tools"] if stop == "interrupt_before" else None
    built = graph.compile(checkpointer=saver(), interrupt_before=before)
    if stop == "error":
        with pytest.raises(OSError, match="down"):
            await run(built, thread())
    else:
        await run(built, thread())
    while (await built.aget_state(thread())).next:
        output = await built.ainvoke(None, thread())
    assert shop.refunds == [REFUND]
    assert error_of(output, "call_0")["kind"] == "run-limit-exceeded"


async def test_i24_an_update_between_pause_and_resume_keeps_the_approval() -> None:
    """I24: `update_state` gives the waiting task another id: its record is taken, nothing asked."""
    shop = Shop()
    tools = tools_of(shop, approval=aa.DeferredApproval(shop.store))
    graph = graph_of(tools, [CALL], saver=saver())
    [record] = pending_records(await run(graph, thread()))
    state = await graph.aget_state(thread())
    last = state.values["messages"][-1]
    await graph.aupdate_state(thread(), {"messages": [last]}, as_node="model")
    await aa.Inbox(shop.store).approve(record, reviewer="ann")
    output = await graph.ainvoke(None, thread())
    assert (pending_records(output), shop.refunds) == ([], [REFUND])


async def _back_before_tools(shop: Shop, **options: Any) -> Any:
    """A graph that has refunded, and is taken back to before its tools."""
    graph = graph_of(tools_of(shop, **options), [CALL], "done", "again", saver=saver())
    await run(graph, thread())
    past = [s async for s in graph.aget_state_history(thread()) if s.next == ("tools",)]
    return graph, past[0].config


@pytest.mark.parametrize("port", [None, asking()])
async def test_i24_time_travel_asks_before_it_repeats_a_write(port: Any) -> None:
    """I24: taken back to before the tools: asked, and without a port nothing runs."""
    shop = free(approval=port)
    graph, before = await _back_before_tools(shop)
    if port is None:
        output = await graph.ainvoke(None, before)
        assert error_of(output, "call_0")["kind"] == "tool-in-doubt"
        assert shop.refunds == [REFUND]
    else:
        await graph.ainvoke(None, before)
        [asked] = port.requests
        assert len(asked.earlier) == 1 and shop.refunds == [REFUND] * 2
    assert len(set(await runs_of(shop))) == 1


async def test_a_run_saved_only_at_its_exit_repeats_no_write() -> None:
    """`durability="exit"`: the task that is resumed is the same; a later equal write asks."""
    shop = free()
    [refund] = [t for t in tools_of(shop) if t.name == "refund"]
    said: list[str] = []

    async def node(state: MessagesState) -> Any:
        said.append(await refund.ainvoke(REFUND))
        interrupt("go on?")
        return {"messages": [AIMessage("done")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    built = graph.compile(checkpointer=saver())
    await built.ainvoke({"messages": [("user", "go")]}, thread(), durability="exit")
    await built.ainvoke(resume(), thread(), durability="exit")
    assert (shop.refunds, said[0]) == ([REFUND], said[1])
    await built.ainvoke({"messages": [("user", "go")]}, thread(), durability="exit")
    assert "tool-in-doubt" in said[2] and shop.refunds == [REFUND]


async def test_a_slow_saver_is_waited_for() -> None:
    """LangGraph saves in the background: a call waits until its place is kept."""

    class Slow(InMemorySaver):
        async def aput(self, *args: Any) -> Any:
            for _ in range(50):
                await asyncio.sleep(0)
            return await super().aput(*args)

    shop = free()
    graph = graph_of(tools_of(shop), [CALL], "done", [CALL], saver=Slow())
    for _ in range(2):
        await run(graph, thread())
    assert len(set(await runs_of(shop))) == 2 and None not in {
        ctx.identity.run for ctx in shop.contexts
    }
