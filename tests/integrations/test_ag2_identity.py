"""AG2: which call a call is, through real agents."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.stream import MemoryStream
from ag2.testing import TestConfig

import agent_adapter as aa
from agent_adapter.integrations.ag2 import INTEGRATION, ag2_tools

from ._ag2_agent import call_event, results, value
from ._shop import asking

pytestmark = pytest.mark.anyio

NORTH = {"bed": "north"}


class Garden:
    """A registry with one write, and what it did."""

    def __init__(self, gate: Any = None, **policy: Any) -> None:
        self.done: list[str] = []
        self.seen: list[aa.ToolContext] = []
        self.store = aa.open_store("memory://")
        self.inbox = aa.Inbox(self.store)
        self.registry = aa.ToolRegistry()
        self.executor = aa.Executor(self.registry, store=self.store)
        self.gate = gate

        @self.registry.tool(**policy)
        async def water(bed: str, ctx: aa.ToolContext) -> str:
            """Water a bed."""
            self.seen.append(ctx)
            self.done.append(bed)
            return f"watered {bed} ({len(self.done)})"

    def agent(self, *turns: Any) -> Agent:
        """An agent with the tool, whose model plays `turns`."""
        tools = ag2_tools(self.registry, executor=self.executor, approval=self.gate)
        config = TestConfig(*turns, raise_tool_errors=False)
        return Agent("gardener", config=config, tools=tools)


def _deferred(by_gate: bool) -> Garden:
    garden = Garden(confirm=True)
    port = aa.DeferredApproval(garden.store)
    if by_gate:
        garden.gate = port
    else:
        garden.executor.approval = port
    return garden


def _water(call_id: str = "call_0") -> Any:
    return call_event("water", NORTH, call_id=call_id)


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_i1_equal_ids_in_three_responses_are_three_calls(effects: Any, call_id: str) -> None:
    """I1: three model responses of one ask repeat id and arguments: three calls."""
    garden = Garden(effects=effects)
    turns = [[_water(call_id)] for _ in range(3)]
    await garden.agent(*turns, "done").ask("go")
    assert garden.done == ["north"] * 3


async def test_i1_each_ask_of_a_stream_is_a_run() -> None:
    """I1: the stream is the conversation, each ask on it a run; places are numbered in it."""
    garden = Garden()
    reply: Any = await garden.agent([_water(), _water()], "done", [_water()], "done").ask("go")
    await reply.ask("again")
    stream = str(reply.context.stream.id)
    # The calls of one response run side by side, so the tool sees them in either order.
    first, second, third = (ctx.identity for ctx in garden.seen)
    assert first.run == second.run != third.run
    assert {found.conversation for found in (first, second, third)} == {stream}
    assert {first.position, second.position} == {(1,), (2,)} and third.position == (1,)
    assert {(ctx.run_id, ctx.thread_id) for ctx in garden.seen} == {(stream, stream)}


async def test_i8_calls_without_an_id_run_once_each_after_their_yes() -> None:
    """I8: the gate is asked about both calls with the id "", and each runs once."""
    port = asking()
    garden = Garden(gate=port, confirm=True)
    await garden.agent([_water("")], [_water("")], "done").ask("go")
    assert (len(port.requests), garden.done) == (2, ["north", "north"])


async def test_i8_a_parallel_pair_without_ids_runs_once_each() -> None:
    """I8: two calls with the id "" in one response are two calls."""
    port = asking()
    garden = Garden(gate=port, confirm=True)
    await garden.agent([_water(""), _water("")], "done").ask("go")
    assert (len(port.requests), garden.done) == (2, ["north", "north"])


@pytest.mark.parametrize("by_gate", [True, False])
async def test_i10_a_denial_ends_with_the_ask(by_gate: bool) -> None:
    """I10: denied in one ask; asked for again by the user, it is a question again."""
    garden, asked = _deferred(by_gate), []
    reply: Any = await garden.agent([_water()], "done", [_water()], "done").ask("go")
    for _ in range(2):
        (record,) = await garden.inbox.list()
        await garden.inbox.deny(record.id, reviewer="ann", reason="not today")
        asked.append(record.id)
        reply = await reply.ask("do it, please") if len(asked) == 1 else reply
    assert len(set(asked)) == 2 and garden.done == []


@pytest.mark.parametrize("by_gate", [True, False])
async def test_i25_an_approval_is_used_by_the_next_ask(by_gate: bool) -> None:
    """I25: the person says yes after the ask; the next one runs the call once."""
    garden = _deferred(by_gate)
    reply: Any = await garden.agent([_water()], "done", [_water()], "done").ask("go")
    (record,) = await garden.inbox.list()
    await garden.inbox.approve(record.id, reviewer="ann")
    await reply.ask("go on")
    assert garden.done == ["north"]
    assert await garden.inbox.list() == []


async def test_an_event_that_is_sent_again_is_the_call_that_it_was() -> None:
    """The same event on the stream again gives the recorded outcome, in a later ask, too."""
    garden = Garden()
    event = _water()
    reply: Any = await garden.agent([event], "done", [event], "done").ask("go")
    reply = await reply.ask("again")
    assert garden.done == ["north"]
    assert value((await results(reply))["call_0"]) == "watered north (1)"


async def test_a_native_call_outside_of_an_ask_is_told_apart_by_arrival() -> None:
    """`bind_context` gives the stream where no ask runs, and nothing where there is no stream."""
    from ag2.context import ConversationContext

    context = ConversationContext(stream=MemoryStream())
    found = INTEGRATION.bind_context((_water(), context)).identity
    assert (found.run, found.position) == (str(context.stream.id), None)
    assert INTEGRATION.bind_context(_water()).identity.run is None
