"""One round: a packet, silence, a wait for a person, or a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.flow.graph import AgentTarget, ToolCalled, Transition, TransitionGraph
from agent_adapter.network.turns.turn import Reply, Turn
from agent_adapter.network.turns.turn_runner import run_round

from ._turns import FakePort, executor_of, turn_of_ann

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


async def _round(drive: Any, **options: Any) -> FakePort:
    port = FakePort()
    await run_round("agent", turn_of_ann(port, **options), drive)
    return port


@tools.tool(confirm=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def test_a_text_is_a_packet() -> None:
    """The round's text is the body of its one packet, sent once under the turn's id."""

    async def drive(agent: Any, turn: Turn) -> Reply:
        return Reply("hi")

    port = await _round(drive)
    assert (port.body, port.routing) == ("hi", {"kind": "text"})
    assert port.packets[0] is not None
    assert port.packets[0].idempotency_key == "trn_1"


async def test_a_round_without_words_is_silent() -> None:
    """Neither a body nor a routing call: the turn ends without a packet."""

    async def drive(agent: Any, turn: Turn) -> Reply:
        return Reply()

    assert (await _round(drive)).packets == [None]


async def test_a_tool_of_the_graph_routes() -> None:
    """A call of a tool that the graph names makes the packet a handoff."""
    graph = TransitionGraph(
        "A", [Transition(when=ToolCalled("pay"), then=AgentTarget("B"))], AgentTarget("A")
    )

    async def drive(agent: Any, turn: Turn) -> Reply:
        return Reply("", [aa.network.RoundCall(tool="pay", arguments={"reason": "due"})])

    port = await _round(drive, graph=graph)
    assert port.routing == {"kind": "handoff", "tool": "pay", "reason": "due"}


async def test_a_failing_driver_counts() -> None:
    """What the driver raises is told to the hub and not raised again."""

    async def drive(agent: Any, turn: Turn) -> Reply:
        raise OSError("model is down")

    port = await _round(drive)
    assert (port.packets, [str(error) for error in port.errors]) == ([], ["model is down"])


async def test_a_waiting_call_parks_the_turn() -> None:
    """A round that met a call which waits for a person writes no packet."""
    executor = executor_of()
    executor.approval = aa.DeferredApproval(executor.store)

    async def drive(agent: Any, turn: Turn) -> Reply:
        try:
            await turn.call(pay, amount=5)
        except aa.ApprovalPending:
            return Reply("waiting")
        return Reply("paid")

    port = await _round(drive, executor=executor)
    assert port.packets == []
    assert [item[:4] for item in port.waits_for] == ["apr_"]


async def test_an_answer_ends_the_wait() -> None:
    """After the approval the next attempt runs the call once and sends its packet."""
    executor = executor_of()
    executor.approval = aa.DeferredApproval(executor.store)

    async def drive(agent: Any, turn: Turn) -> Reply:
        return Reply(await turn.call(pay, amount=5))

    port = await _round(drive, executor=executor)
    await aa.Inbox(executor.store).approve(port.waits_for[0], reviewer="eve")
    again = await _round(drive, executor=executor, attempt=2)
    assert again.body == "paid 5"


async def test_a_handoff_to_nobody_ends_as_a_protocol_error() -> None:
    """A driver's own handoff to a stranger is the turn's failure, and names the participants."""

    async def drive(agent: Any, turn: Turn) -> Reply:
        return Reply("", [aa.network.RoundCall(tool="go", result=aa.Handoff("zoe"))])

    [error] = (await _round(drive)).errors
    assert isinstance(error, aa.ProtocolError)
    assert "ann, bob" in str(error)


async def test_cancellation_passes() -> None:
    """A cancelled round tells nobody anything: the turn is still open."""

    async def drive(agent: Any, turn: Turn) -> Reply:
        raise asyncio.CancelledError

    port = FakePort()
    with pytest.raises(asyncio.CancelledError):
        await run_round("agent", turn_of_ann(port), drive)
    assert (port.packets, port.errors, port.waits_for) == ([], [], [])
