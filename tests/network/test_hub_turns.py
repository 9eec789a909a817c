"""Turns: started once, tried again, parked, woken, and never written by an attempt given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import ProtocolError, StaleTurn
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.flow.envelope import EV_CONTEXT_SET
from agent_adapter.network.turns.turn_types import StartedTurn
from agent_adapter.store import approvals, open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


async def _pipeline(at: Scene, function: Any) -> Any:
    """A person, then one function: the channel in which it has its turn."""
    await at.person("user")
    await at.agent("worker", function)
    graph = TransitionGraph.sequence(at.names("user", "worker"))
    return await at.open("user", ["worker"], graph)


async def test_a_due_turn_is_run_and_its_answer_accepted() -> None:
    """The function's text is the worker's packet."""
    async with scene() as at:
        channel = await _pipeline(at, lambda text: f"you said {text}")
        await channel.send("hello")
        await at.settle()
        assert (await at.said(channel))[-1] == ("worker", "you said [user]: hello")


async def test_a_failing_driver_is_tried_after_1_10_and_60_seconds_and_no_more() -> None:
    """Then the channel closes; the reason is `turn_failed`."""
    attempts: list[int] = []

    async def broken(turn: Any) -> str:
        attempts.append(turn.attempt)
        raise ValueError("no answer")

    async with scene() as at:
        channel = await _pipeline(at, broken)
        await channel.send("hello")
        await at.settle()
        assert attempts == [1]
        await at.pass_by(0.9)
        assert attempts == [1]
        await at.pass_by(0.2)
        assert attempts == [1, 2]
        await at.pass_by(9.9)
        assert attempts == [1, 2]
        await at.pass_by(0.2)
        assert attempts == [1, 2, 3]
        await at.pass_by(59.9)
        assert attempts == [1, 2, 3]
        await at.pass_by(0.2)
        assert attempts == [1, 2, 3, 4]
        assert await at.reason(channel) == "turn_failed"


async def test_a_failure_is_in_the_audit_log_with_its_class_and_text() -> None:
    """Each attempt is noted."""

    async def broken(turn: Any) -> str:
        raise OSError("the model is away")

    async with scene() as at:
        channel = await _pipeline(at, broken)
        await channel.send("hello")
        await at.settle()
        failed = [r for r in await at.hub.audit_log.read_all() if r["kind"] == "turn_failed"]
        assert [(r["exc_type"], r["exc_message"]) for r in failed] == [
            ("OSError", "the model is away")
        ]


async def test_a_protocol_error_is_not_tried_again() -> None:
    """It would break the same rule again."""
    attempts: list[int] = []

    async def wrong(turn: Any) -> str:
        attempts.append(turn.attempt)
        raise ProtocolError("no such thing")

    async with scene() as at:
        channel = await _pipeline(at, wrong)
        await channel.send("hello")
        await at.settle()
        assert attempts == [1]
        assert await at.reason(channel) == "turn_failed"


async def test_a_driver_that_recovers_goes_on() -> None:
    """The second attempt's answer is accepted, once."""
    attempts: list[int] = []

    async def shaky(turn: Any) -> str:
        attempts.append(turn.attempt)
        if turn.attempt == 1:
            raise OSError("once")
        return "here"

    async with scene() as at:
        channel = await _pipeline(at, shaky)
        await channel.send("hello")
        await at.settle()
        await at.pass_by(1.1)
        assert attempts == [1, 2]
        assert await at.said(channel) == [("user", "hello"), ("worker", "here")]


async def test_a_silent_round_ends_its_turn_and_writes_what_it_staged() -> None:
    """No packet; the variables are changed; the same participant is still expected."""

    async def silent(turn: Any) -> None:
        await turn.channel.send("", event_type=EV_CONTEXT_SET, event_data={"set": {"seen": 1}})

    async with scene() as at:
        channel = await _pipeline(at, silent)
        await channel.send("hello")
        await at.settle()
        state = await at.hub.adapter_state(channel.channel_id)
        assert state.context_vars == {"seen": 1}
        assert state.expected_next_speaker == at.id("worker")
        assert await at.hub.pending_turns_for(at.id("worker")) == []


async def test_a_silent_speaker_may_still_speak_by_hand() -> None:
    """The turn is over, the expectation is not."""
    async with scene() as at:
        channel = await _pipeline(at, lambda text: None)
        await channel.send("hello")
        await at.settle()
        own = await at.agents["worker"].channel(channel.channel_id)
        await own.send("after all")
        assert await at.reason(channel) == "sequence_complete"


async def test_an_attempt_that_was_given_up_cannot_write() -> None:
    """`StaleTurn`: the turn belongs to the next attempt."""
    held: list[StartedTurn] = []

    async with scene() as at:
        channel = await _pipeline(at, lambda text: "late")
        worker = at.agents["worker"]
        original = worker.run_turn
        await at.hub.detach(worker.agent_id)
        await channel.send("hello")
        turn_id = (await at.hub.pending_turns_for(worker.agent_id))[0].turn_id
        first = await at.hub.start_turn(turn_id)
        assert first is not None
        held.append(first)
        await at.hub.release_turn(first.ref)
        second = await at.hub.start_turn(turn_id)
        assert second is not None and second.attempt == 2
        with pytest.raises(StaleTurn, match="attempt 1 of turn"):
            await at.hub.end_silent_turn(first.ref)
        await original(second)
        assert await at.reason(channel) == "sequence_complete"


def _shop(done: list[str]) -> aa.ToolRegistry:
    registry = aa.ToolRegistry()

    @registry.tool(confirm=True, effects="write")
    def refund(order_id: str) -> str:
        """Refund an order."""
        done.append(order_id)
        return f"refunded {order_id}"

    return registry


async def _approve(store: Any) -> None:
    rows = await store.read(lambda tx: tx.select("approvals", {"state": "pending"}))
    for row in rows:
        await store.write(
            lambda tx, id=row["id"]: approvals.decide(tx, id, verdict="approved", reviewer="ana")
        )


async def test_a_turn_that_waits_for_a_person_is_parked_and_goes_on_when_they_decide() -> None:
    """The tool runs once, in the second attempt of the same turn."""
    done: list[str] = []
    registry = _shop(done)

    async def worker(turn: Any) -> str:
        return str(await turn.call(registry.get("refund"), order_id="A1"))

    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        channel = await _pipeline(at, worker)
        await channel.send("refund A1")
        await at.settle()
        assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "parked"
        assert await at.said(channel) == [("user", "refund A1")]
        await _approve(store)
        await at.settle()
        assert done == ["A1"]
        assert (await at.said(channel))[-1] == ("worker", "refunded A1")


async def test_a_decision_wakes_a_turn_after_a_restart(tmp_path: Path) -> None:
    """Parked in one process's store, decided while no hub runs, done by the next."""
    done: list[str] = []
    registry = _shop(done)

    async def worker(turn: Any) -> str:
        return str(await turn.call(registry.get("refund"), order_id="A1"))

    path, clock = tmp_path / "hub.db", FakeClock()
    store = open_store(path, clock=clock)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        channel = await _pipeline(at, worker)
        await channel.send("refund A1")
        await at.settle()
        assert done == []
    await store.aclose()
    store = open_store(path, clock=clock)
    await _approve(store)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        await at.person("user")
        await at.agent("worker", worker)
        await at.settle()
        assert done == ["A1"]
        assert await at.reason(channel.channel_id) == "sequence_complete"
    await store.aclose()


async def test_an_approval_that_nobody_decides_wakes_the_turn_and_is_asked_again() -> None:
    """The question's time is over: the round runs again, and files a new one."""
    done: list[str] = []
    registry = _shop(done)
    attempts: list[int] = []

    async def worker(turn: Any) -> str:
        attempts.append(turn.attempt)
        return str(await turn.call(registry.get("refund"), order_id="A1"))

    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        channel = await _pipeline(at, worker)
        await channel.send("refund A1")
        await at.settle()
        await at.pass_by(72 * 3600 - 1)
        assert attempts == [1]
        await at.pass_by(10)
        assert attempts == [1, 2]
        await _approve(store)
        await at.settle()
        assert done == ["A1"]


async def test_a_duplicate_gives_the_id_of_the_first_acceptance() -> None:
    """Two messages with one key are one message, also after the turn has gone on."""
    async with scene() as at:
        await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        channel = await at.open("ana", ["bob"], graph)
        from agent_adapter.flow.envelope import EV_TEXT, Envelope

        said = Envelope(
            channel.channel_id, at.id("ana"), None, EV_TEXT, {"text": "1"}, idempotency_key="k"
        )
        first = await at.hub.post_envelope(said)
        assert await at.hub.post_envelope(said) == first
        assert await at.said(channel) == [("ana", "1")]


async def test_messages_that_come_before_a_turn_begins_are_answered_together() -> None:
    """In a free channel the waiting turn answers the newest and sees the others."""
    heard: list[list[str]] = []

    async def bob(turn: Any) -> str:
        heard.append([*(item.text for item in turn.messages), turn.input_text])
        return "all three"

    async with scene() as at:
        ana = await at.person("ana")
        client = await at.agent("bob", bob)
        channel = await ana.open(type="conversation", target=["bob"])
        await at.hub.detach(client.agent_id)
        for text in ("one", "two", "three"):
            await channel.send(text)
        at.hub.attach(client.agent_id, client)
        await at.settle()
        assert heard == [["one", "two", "three"]]
        assert (await at.said(channel))[-1] == ("bob", "all three")


async def test_a_message_during_a_round_is_answered_after_it() -> None:
    """One round at a time in a channel, and none is lost."""
    import asyncio

    rounds: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def bob(turn: Any) -> str:
        rounds.append(turn.input_text)
        begun.set()
        await go_on.wait()
        return f"re {turn.input_text}"

    async with scene() as at:
        ana = await at.person("ana")
        await at.agent("bob", bob)
        channel = await ana.open(type="conversation", target=["bob"])
        await channel.send("one")
        await begun.wait()
        await channel.send("two")
        go_on.set()
        await at.settle()
        assert rounds == ["one", "two"]
        assert [text for name, text in await at.said(channel) if name == "bob"] == [
            "re one",
            "re two",
        ]


async def test_a_channel_that_closes_drops_every_turn_that_is_open() -> None:
    """Nothing is due in a channel that is over."""
    async with scene() as at:
        ana = await at.person("ana")
        client = await at.agent("bob", lambda text: "hi")
        channel = await ana.open(type="conversation", target=["bob"])
        await at.hub.detach(client.agent_id)
        await channel.send("one")
        await channel.close("enough")
        assert await at.hub.pending_turns_for(client.agent_id) == []


@pytest.mark.parametrize("ends", ["closed", "answered"])
async def test_a_turn_that_ends_withdraws_its_questions(ends: str) -> None:
    """Its channel is closed, or its participant answers by itself: nobody waits for an answer."""
    done: list[str] = []
    registry = _shop(done)

    async def worker(turn: Any) -> str:
        return str(await turn.call(registry.get("refund"), order_id="A1"))

    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        channel = await _pipeline(at, worker)
        await channel.send("refund A1")
        await at.settle()
        [record] = await aa.Inbox(store).list()
        if ends == "closed":
            await channel.close("enough")
        else:
            own = await at.agents["worker"].channel(channel.channel_id)
            await own.send("I leave it")
        await at.settle()
        ended = await aa.Inbox(store).get(record.id)
        assert ended.state == "withdrawn" and done == []
        assert ("channel has ended" if ends == "closed" else "its turn was taken") in ended.reason
