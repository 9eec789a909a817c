"""However a round ends, in any type of channel: somebody can go on, and whoever waits is told."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import ProtocolError
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.network import (
    AdapterResult,
    ChannelManifest,
    ChannelState,
    DiscussionAdapter,
    Expectation,
)
from agent_adapter.network.turns import turn_queue
from agent_adapter.store import approvals
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio

TYPES = ["consulting", "conversation", "discussion", "workflow", "custom"]


class StopAdapter(DiscussionAdapter):
    """A discussion that a word ends."""

    manifest = ChannelManifest("custom", expectations=[Expectation("turn_within", "warn")])

    def on_accepted(self, metadata: Any, envelope: Any, state: Any) -> AdapterResult:
        """The word closes the channel."""
        if envelope.event_data.get("text") == "stop":
            return AdapterResult(next_state=ChannelState.CLOSING, auto_close_reason="stop_word")
        return AdapterResult()


class Worker:
    """An agent whose next rounds end as the test says; at last it answers."""

    def __init__(self, *ends: str) -> None:
        self.ends = list(ends)
        self.rounds = 0
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()
        self.refunds: list[str] = []
        registry = aa.ToolRegistry()

        @registry.tool(confirm=True, effects="write")
        def refund(order: str) -> str:
            """Refund an order."""
            self.refunds.append(order)
            return f"refunded {order}"

        self._tool = registry.get("refund")

    async def __call__(self, turn: Any) -> str | None:
        """One round."""
        self.rounds += 1
        end = self.ends.pop(0) if self.ends else "ok"
        if end == "silent":
            return None
        if end == "failed":
            raise OSError("the model is away")
        if end == "hangs":
            self.entered.set()
            await self.go_on.wait()
        if end in ("parked", "denied"):
            self.ends.insert(0, end)
            try:
                answer = str(await turn.call(self._tool, order="A1"))
            except aa.ApprovalDenied:
                answer = "not refunded"
            self.ends.clear()
            return answer
        return "done"


async def _open(at: Scene, type: str, worker: Worker) -> Any:
    at.hub.register_adapter(StopAdapter())
    user = await at.person("user")
    await at.agent("worker", worker.__call__)
    knobs = {}
    if type == "workflow":
        graph = TransitionGraph.round_robin(at.names("user", "worker"), max_turns=9)
        knobs = {"graph": graph.to_dict()}
    return await user.open(type=type, target=["worker"], knobs=knobs)


async def _audit(at: Scene, kind: str) -> list[dict[str, Any]]:
    return [r for r in await at.hub.audit_log.read_all() if r["kind"] == kind]


async def _answered(at: Scene, channel: Any, text: str = "done") -> None:
    """The worker's answer is in the log, and whoever is next can take the next turn."""
    await at.settle()
    assert ("worker", text) in await at.said(channel)
    metadata = await at.hub.get_channel(channel.channel_id)
    adapter = at.hub.adapter_for(channel.channel_id)
    state = await at.hub.folded_state(channel.channel_id)
    expected = adapter.expected_next(metadata, state)
    if metadata.is_terminal():
        assert metadata.close_reason
    elif expected is not None:
        assert expected.agent_id == at.id("user"), "a person, who can send"
        assert await at.hub.pending_turns_for(expected.agent_id)


@pytest.mark.parametrize("type", TYPES)
async def test_a_round_that_answers(type: str) -> None:
    """The next one can go on, or the channel has ended with a reason."""
    async with scene() as at:
        channel = await _open(at, type, Worker())
        await channel.send("go")
        await _answered(at, channel)


@pytest.mark.parametrize("type", [item for item in TYPES if item != "conversation"])
async def test_a_silent_round_is_told_and_started_again(
    type: str, caplog: pytest.LogCaptureFixture
) -> None:
    """N7: `resume_pending_turns` starts it again; the log and the audit log say that it waits."""
    worker = Worker("silent")
    async with scene() as at:
        channel = await _open(at, type, worker)
        with caplog.at_level(logging.WARNING):
            await channel.send("go")
            await at.settle()
        assert "ended without a message" in caplog.text and "worker" in caplog.text
        [record] = await _audit(at, "turn_silent")
        assert record["agent_id"] == at.id("worker")
        assert await at.agents["worker"].resume_pending_turns() == 1
        await _answered(at, channel)
        assert worker.rounds == 2


@pytest.mark.parametrize("type", [item for item in TYPES if item != "conversation"])
async def test_a_silent_round_is_started_again_when_its_agent_registers_again(type: str) -> None:
    """N7: a program that is started again goes on."""
    worker = Worker("silent")
    async with scene() as at:
        channel = await _open(at, type, worker)
        await channel.send("go")
        await at.settle()
        await at.agents["worker"].disconnect()
        await at.agent("worker", worker.__call__)
        await _answered(at, channel)


async def test_silence_is_an_answer_where_nobody_is_expected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In a conversation either may stay silent: nobody is told, and both can go on."""
    async with scene() as at:
        channel = await _open(at, "conversation", Worker("silent"))
        with caplog.at_level(logging.WARNING):
            await channel.send("go")
            await at.settle()
        assert "ended without a message" not in caplog.text
        row = await at.hub.store.read(lambda tx: tx.get("channels", channel.channel_id))
        assert row["expected"] is None
        assert await at.agents["worker"].resume_pending_turns() == 0
        await channel.send("go on")
        await _answered(at, channel)


async def test_a_resumed_round_repeats_no_write() -> None:
    """The turn is the same one: a call that has ended keeps its recorded outcome."""
    done: list[str] = []
    registry = aa.ToolRegistry()

    @registry.tool(effects="write")
    def charge(order: str) -> str:
        """Charge an order."""
        done.append(order)
        return f"charged {order}"

    rounds: list[str] = []

    async def worker(turn: Any) -> str | None:
        rounds.append(await turn.call(registry.get("charge"), order="A1"))
        return None if len(rounds) == 1 else rounds[-1]

    async with scene() as at:
        user = await at.person("user")
        await at.agent("worker", worker)
        channel = await user.open(type="discussion", target=["worker"])
        await channel.send("go")
        await at.settle()
        assert await at.agents["worker"].resume_pending_turns() == 1
        await at.settle()
        assert rounds == ["charged A1"] * 2 and done == ["A1"]
        assert ("worker", "charged A1") in await at.said(channel)


@pytest.mark.parametrize("type", TYPES)
async def test_a_silent_speaker_who_speaks_by_hand_is_not_started_again(type: str) -> None:
    """What it was expected to say has been said."""
    worker = Worker("silent")
    async with scene() as at:
        channel = await _open(at, type, worker)
        await channel.send("go")
        await at.settle()
        own = await at.agents["worker"].channel(channel.channel_id)
        await own.send("done")
        assert await at.agents["worker"].resume_pending_turns() == 0
        await _answered(at, channel)
        assert worker.rounds == 1


@pytest.mark.parametrize("type", TYPES)
async def test_a_failed_round_is_tried_again(type: str) -> None:
    """It is in the audit log, and due again."""
    async with scene() as at:
        channel = await _open(at, type, Worker("failed"))
        await channel.send("go")
        await at.settle()
        assert [r["exc_type"] for r in await _audit(at, "turn_failed")] == ["OSError"]
        assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "due"
        await at.pass_by(61)
        await _answered(at, channel)


@pytest.mark.parametrize("type", TYPES)
async def test_a_round_that_fails_for_good_closes_the_channel(type: str) -> None:
    """Everybody reads the reason."""
    async with scene() as at:
        channel = await _open(at, type, Worker(*["failed"] * 50))
        await channel.send("go")
        for _ in range(20):
            await at.pass_by(61)
        metadata = await at.hub.get_channel(channel.channel_id)
        assert metadata.is_terminal()
        assert metadata.close_reason.startswith(("turn_failed", "expectation_violated"))
        assert await _audit(at, "channel_closed")


@pytest.mark.parametrize("type", TYPES)
async def test_a_parked_round_goes_on_with_the_decision(type: str) -> None:
    """The turn is parked, its question is in the inbox, and the decision starts it."""
    clock, worker = FakeClock(), Worker("parked")
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        channel = await _open(at, type, worker)
        await channel.send("go")
        await at.settle()
        assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "parked"
        [asked] = await aa.Inbox(store).list()
        await store.write(
            lambda tx: approvals.decide(tx, asked.id, verdict="approved", reviewer="ana")
        )
        await _answered(at, channel, "refunded A1")
        assert worker.refunds == ["A1"]


@pytest.mark.parametrize("type", TYPES)
async def test_a_denied_call_is_the_agents_to_answer(type: str) -> None:
    """A person's no ends no channel."""
    worker = Worker("denied")
    async with scene(approval=aa.CallbackApproval(lambda request: False)) as at:
        channel = await _open(at, type, worker)
        await channel.send("go")
        await _answered(at, channel, "not refunded")
        assert worker.refunds == []


@pytest.mark.parametrize("type", TYPES)
async def test_a_cancelled_round_is_given_back(type: str) -> None:
    """Its agent disconnects in the middle; the turn is due, and runs when it is back."""
    worker = Worker("hangs")
    async with scene() as at:
        channel = await _open(at, type, worker)
        await channel.send("go")
        await worker.entered.wait()
        await at.agents["worker"].disconnect()
        assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "due"
        await at.agent("worker", worker.__call__)
        await _answered(at, channel)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("accepted", [False, True], ids=["before-accept", "after-accept"])
async def test_a_hub_that_dies_is_followed_by_one_that_goes_on(type: str, accepted: bool) -> None:
    """Before its round was accepted the turn is run again; after it, it is not."""
    clock, worker = FakeClock(), Worker() if accepted else Worker("hangs")
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock) as dead:
        channel = await _open(dead, type, worker)
        await channel.send("go")
        if accepted:
            await dead.settle()
        else:
            await worker.entered.wait()
        await dead.hub._scheduler.close()
        dead.hub._closed = True  # as a process that is gone: nothing is released
        async with scene(store, clock=clock) as at:
            at.hub.register_adapter(StopAdapter())
            await at.person("user")
            await at.agent("worker", worker.__call__)
            await _answered(at, channel)
            assert worker.rounds == (1 if accepted else 2)
            said = await at.said(channel)
            assert said.count(("worker", "done")) == 1
        dead.hub._closed = False
        worker.go_on.set()


@pytest.mark.parametrize("type", [item for item in TYPES if item != "conversation"])
async def test_a_participant_that_is_removed_leaves_a_word(
    type: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can take its turn: the log and the audit log say which channel stands still."""
    async with scene() as at:
        channel = await _open(at, type, Worker("silent"))
        await channel.send("go")
        await at.settle()
        with caplog.at_level(logging.WARNING):
            await at.agents["worker"].unregister()
        [record] = await _audit(at, "turn_stuck")
        assert record["channel_id"] == channel.channel_id
        assert "still waits for its turn" in caplog.text


async def test_a_channel_type_that_is_closing_closes() -> None:
    """N6: `CLOSING` with a reason ends the channel, with that reason."""
    async with scene() as at:
        channel = await _open(at, "custom", Worker())
        await channel.send("stop")
        assert await at.reason(channel) == "stop_word"
        assert (await channel.info()).state is ChannelState.CLOSED
        with pytest.raises(ProtocolError, match=r"closed \(stop_word\)"):
            await channel.send("more")


@pytest.mark.parametrize(
    ("state", "reason", "ends"),
    [
        (ChannelState.CLOSED, "over", ("closed", "over")),
        (ChannelState.EXPIRED, "late", ("expired", "late")),
        (ChannelState.CLOSING, "", ("closed", "closed_by_channel_type")),
        ("closing", "text", ("closed", "text")),
        (ChannelState.ACTIVE, "x", ("active", "")),
        (None, "x", ("active", "")),
    ],
)
async def test_every_next_state_of_a_channel_type(state: Any, reason: str, ends: Any) -> None:
    """N6: those that end a channel end it, with a reason; the others leave it open."""

    class Own(StopAdapter):
        def on_accepted(self, metadata: Any, envelope: Any, held: Any) -> AdapterResult:
            return AdapterResult(state, reason)

    async with scene() as at:
        channel = await _open(at, "custom", Worker("silent"))
        at.hub.register_adapter(Own())
        at.hub._service.snapshots.clear()
        await channel.send("go")
        found = await channel.info()
        assert (found.state.value, found.close_reason) == ends


async def test_open_states_are_those_of_turns_that_can_be_taken() -> None:
    """A silent turn is one of them."""
    assert set(turn_queue.OPEN) == {"due", "running", "parked", "silent"}
