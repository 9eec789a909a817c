"""Deadlines really fire: warned, closed, noted; they stand still where nobody can be blamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import ProtocolError
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.flow.envelope import EV_EXPECTATION_VIOLATED
from agent_adapter.network.adapters.workflow import WorkflowAdapter
from agent_adapter.network.channels.metadata import ChannelManifest, Expectation
from agent_adapter.store import open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


async def _two_people(at: Scene) -> Any:
    await at.person("ana")
    await at.person("bob")
    graph = TransitionGraph.round_robin(at.names("ana", "bob"))
    return await at.open("ana", ["bob"], graph)


async def test_a_silent_speaker_is_warned_about_at_120_s() -> None:
    """The channel is told whom it waits for, and for how long."""
    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        await at.pass_by(119)
        assert EV_EXPECTATION_VIOLATED not in [e.event_type for e in await at.log(channel)]
        await at.pass_by(2)
        warned = (await at.log(channel))[-1]
        assert warned.event_type == EV_EXPECTATION_VIOLATED
        assert warned.event_data["violators"] == [at.id("bob")]
        assert warned.event_data["detail"]["threshold_seconds"] == 120


async def test_a_silent_speaker_closes_the_channel_at_600_s() -> None:
    """The reason names the expectation."""
    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        await at.pass_by(121)
        await at.pass_by(478)
        assert await at.reason(channel) is None
        await at.pass_by(2)
        assert await at.reason(channel) == "expectation_violated:turn_within"


async def test_a_deadline_fires_once() -> None:
    """Two sweeps tell it once."""
    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        await at.pass_by(121)
        await at.pass_by(1)
        kinds = [e.event_type for e in await at.log(channel)]
        assert kinds.count(EV_EXPECTATION_VIOLATED) == 1


async def test_an_answer_in_time_starts_the_clock_anew() -> None:
    """Each turn has its own 120 s."""
    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        await at.pass_by(100)
        await at.people["bob"].send(channel.channel_id, "here")
        await at.pass_by(100)
        kinds = [e.event_type for e in await at.log(channel)]
        assert EV_EXPECTATION_VIOLATED not in kinds


async def test_both_deadlines_passed_at_once_warn_and_close() -> None:
    """A sweeper that was late does in two sweeps what it would have done."""
    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        await at.pass_by(700)
        await at.pass_by(0)
        assert (await at.events(channel))[-2:] == ["expectation.violated", "channel.closed"]


async def test_a_violation_is_in_the_audit_log() -> None:
    """With the expectation, whom it is about, and what followed."""
    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        await at.pass_by(121)
        records = [r for r in await at.hub.audit_log.read_all() if "violated" in r["kind"]]
        assert [(r["expectation"], r["on_violation"]) for r in records] == [("turn_within", "warn")]


async def test_the_clock_stands_still_while_a_turn_waits_for_a_person() -> None:
    """An hour of waiting for an approval is nobody's silence."""
    registry = aa.ToolRegistry()

    @registry.tool(confirm=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async def worker(turn: Any) -> str:
        return str(await turn.call(registry.get("pay"), amount=3))

    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock, approval=DeferredApproval(store)) as at:
        await at.person("ana")
        await at.agent("worker", worker)
        graph = TransitionGraph.sequence(at.names("ana", "worker"))
        channel = await at.open("ana", ["worker"], graph)
        await channel.send("pay 3")
        await at.settle()
        await at.pass_by(3000)
        assert EV_EXPECTATION_VIOLATED not in [e.event_type for e in await at.log(channel)]
        assert await at.reason(channel) is None


async def test_the_clock_goes_on_where_it_stood_when_the_person_has_decided() -> None:
    """The seconds before the pause count."""
    from agent_adapter.store import waits

    async with scene() as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        at.clock.pass_by(100)
        turn = (await at.hub.pending_turns_for(at.id("bob")))[0]

        def park(tx: Any) -> None:
            from agent_adapter.network.channels import expectations

            row = tx.get("turns", turn.turn_id)
            tx.update("turns", {"turn_id": turn.turn_id}, {"state": "parked"})
            waits.park(tx, turn.turn_id, ["apr_x"])
            expectations.pause(tx, row["channel_id"], row["n"])

        await at.hub.store.write(park)
        await at.pass_by(5000)
        await at.hub.store.write(lambda tx: waits.wake(tx, "apr_x"))
        await at.pass_by(19)
        kinds = [e.event_type for e in await at.log(channel)]
        assert EV_EXPECTATION_VIOLATED not in kinds
        await at.pass_by(2)
        assert (await at.log(channel))[-1].event_type == EV_EXPECTATION_VIOLATED


async def test_time_without_a_hub_is_added(tmp_path: Path) -> None:
    """A night in which nothing ran is nobody's silence."""
    clock = FakeClock()
    path = tmp_path / "hub.db"
    async with scene(open_store(path, clock=clock), clock=clock) as at:
        channel = await _two_people(at)
        await channel.send("your turn")
        at.clock.pass_by(60)
        await at.hub.poll()
        first = at.hub.store
    await first.aclose()
    clock.pass_by(40_000)
    store = open_store(path, clock=clock)
    async with scene(store, clock=clock) as at:
        await at.pass_by(58)
        assert await at.events(channel.channel_id) == ["msg.text"]
        await at.pass_by(3)
        assert (await at.events(channel.channel_id))[-1] == "expectation.violated"
    await store.aclose()


async def test_an_invitation_that_nobody_answers_ends_the_channel() -> None:
    """`open` raises, naming who was silent; nothing stays open."""
    async with scene(invite_ack_timeout=0.05) as at:
        await at.person("ana")
        await at.person("bob", auto_ack_invites=False)
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        with pytest.raises(ProtocolError, match="no answer from bob"):
            await at.open("ana", ["bob"], graph)
        channels = await at.hub.list_channels()
        assert [item.close_reason for item in channels] == ["invite_timeout"]


async def test_an_invitation_left_by_a_dead_hub_ends_by_its_deadline() -> None:
    """`acks_within` is a row, so it outlives whoever asked."""
    import asyncio

    async with scene() as at:
        await at.person("ana")
        await at.person("bob", auto_ack_invites=False)
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        opening = asyncio.create_task(at.open("ana", ["bob"], graph))
        while not await at.hub.list_channels():
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await at.pass_by(31)
        assert [c.close_reason for c in await at.hub.list_channels()] == ["invite_timeout"]


async def test_acks_within_of_consulting_closes_the_channel() -> None:
    """Its manifest says 30 s, auto_close."""
    import asyncio

    async with scene(invite_ack_timeout=1000) as at:
        ana = await at.person("ana")
        await at.person("bob", auto_ack_invites=False)
        opening = asyncio.create_task(ana.open(type="consulting", target=["bob"]))
        while not await at.hub.list_channels():
            await asyncio.sleep(0)
        await at.pass_by(31)
        with pytest.raises(ProtocolError, match="expectation_violated:acks_within"):
            await opening


async def test_reply_within_of_consulting_closes_the_channel() -> None:
    """The one who was asked has 600 s."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="consulting", target=["bob"])
        await channel.send("well?")
        await at.pass_by(599)
        assert await at.reason(channel) is None
        await at.pass_by(2)
        assert await at.reason(channel) == "expectation_violated:reply_within"


async def test_max_silence_of_a_conversation_is_noted() -> None:
    """Each message starts the hour anew; its violation is in the audit log alone."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"])
        await channel.send("hi")
        await at.pass_by(3000)
        await channel.send("hi?")
        await at.pass_by(3000)
        kinds = {r["kind"] for r in await at.hub.audit_log.read_all()}
        assert "expectation_violated" not in kinds
        await at.pass_by(700)
        kinds = {r["kind"] for r in await at.hub.audit_log.read_all()}
        assert "expectation_violated" in kinds
        assert await at.reason(channel) is None


async def test_a_channel_type_with_other_deadlines_has_those() -> None:
    """A manifest of the program's own replaces 120 and 600 s; roles can be singled out."""

    class Hasty(WorkflowAdapter):
        manifest = ChannelManifest(
            type="workflow",
            version=2,
            expectations=[
                Expectation("turn_within", "auto_close", {"seconds": 5}, ["respondent"]),
            ],
        )

    async with scene() as at:
        at.hub.register_adapter(Hasty())
        await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        metadata = await at.hub.create_channel(
            creator_id=at.id("ana"),
            manifest_type="workflow",
            manifest_version=2,
            participants=at.names("bob"),
            knobs={"graph": graph.to_dict(), "unbounded": True},
        )
        await at.pass_by(6)
        assert await at.reason(metadata.channel_id) is None
        await at.people["ana"].send(metadata.channel_id, "now you")
        await at.pass_by(6)
        assert await at.reason(metadata.channel_id) == "expectation_violated:turn_within"


async def test_a_channel_expires_when_its_time_is_over() -> None:
    """`ttl` ends it as expired, said in its log."""
    async with scene() as at:
        await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        knobs = {"graph": graph.to_dict(), "unbounded": True}
        channel = await at.people["ana"].open(
            type="workflow", target=["bob"], ttl="10m", knobs=knobs
        )
        at.clock.pass_by(599)
        await at.hub.expire_due()
        assert (await channel.info()).state.value == "active"
        at.clock.pass_by(2)
        await at.hub.expire_due()
        assert (await channel.info()).state.value == "expired"
        assert (await at.events(channel))[-1] == "channel.expired"
