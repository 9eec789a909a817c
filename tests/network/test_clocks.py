"""Clocks stand still while nobody can act: a turn is parked, the channel paused, no hub runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.cli.channels import _expiry
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.network import (
    ChannelManifest,
    ConversationAdapter,
    Expectation,
    LimitsBlock,
    Rule,
    TaskMetadata,
    TaskSpec,
    TaskState,
)
from agent_adapter.network.channels.reports import report_of
from agent_adapter.store import approvals
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio

HOUR = 3600.0


def _stage(clock: FakeClock, store: MemoryStore, **terms: Any) -> Any:
    return scene(store, clock=clock, approval=DeferredApproval(store, **terms))


async def _people(at: Scene) -> None:
    """Ana, who opens, and a worker whose only tool a person must allow."""
    registry = aa.ToolRegistry()

    @registry.tool(confirm=True, effects="write")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async def worker(turn: Any) -> str:
        return str(await turn.call(registry.get("pay"), amount=3))

    await at.person("ana")
    await at.agent("worker", worker)


async def _parked(at: Scene, ttl: str | None = "2h", type: str = "workflow") -> Any:
    """A channel whose worker waits for a person."""
    await _people(at)
    graph = TransitionGraph.sequence(at.names("ana", "worker"))
    knobs = {"graph": graph.to_dict()} if type == "workflow" else None
    channel = await at.people["ana"].open(type=type, target=["worker"], ttl=ttl, knobs=knobs)
    await channel.send("pay 3")
    await at.settle()
    assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "parked"
    return channel


async def _allow(at: Scene) -> None:
    """A person allows whatever waits."""
    for row in await at.hub.store.read(lambda tx: tx.select("approvals", {"state": "pending"})):
        done = await at.hub.store.write(
            lambda tx, id=row["id"]: approvals.decide(tx, id, verdict="approved", reviewer="eve")
        )
        assert isinstance(done, dict), done


async def _sweep(at: Scene, seconds: float) -> None:
    await at.pass_by(seconds)
    await at.hub.expire_due()
    await at.settle()


async def _state(at: Scene, channel: Any) -> str:
    return (await at.hub.get_channel(channel.channel_id)).state.value


async def _approval(at: Scene) -> Any:
    [row] = await at.hub.store.read(lambda tx: tx.select("approvals", {}))
    return row


async def test_a_workflow_has_no_life_span_unless_one_is_set() -> None:
    """N4: by default it waits for ever; other types live two hours, as AG2's do."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.sequence(at.names("ana", "bob")).to_dict()
        flow = await ana.open(type="workflow", target=["bob"], knobs={"graph": graph})
        talk = await ana.open(type="discussion", target=["bob"])
        assert (await flow.info()).expires_at is None
        assert (await talk.info()).expires_at is not None
        await _sweep(at, 500 * HOUR)
        assert await _state(at, flow) == "active"
        assert await _state(at, talk) == "expired"


@pytest.mark.parametrize(
    ("of_rule", "ttl", "seconds"),
    [("2h", "2h", 7200), ("1h", None, 3600), ("1h", 0, None), ("", None, None), ("1h", 60, 60)],
)
async def test_a_workflow_lives_as_long_as_is_said(
    of_rule: str, ttl: str | int | None, seconds: float | None
) -> None:
    """N4: `ttl` of the opening counts, then the opener's rule; 0 is for ever."""
    async with scene() as at:
        ana = await at.person("ana", rule=Rule(limits=LimitsBlock(channel_ttl_default=of_rule)))
        await at.person("bob")
        graph = TransitionGraph.sequence(at.names("ana", "bob")).to_dict()
        flow = await ana.open(type="workflow", target=["bob"], knobs={"graph": graph}, ttl=ttl)
        row = await at.hub.store.read(lambda tx: tx.get("channels", flow.channel_id))
        assert row["ttl"] == seconds
        assert row["expires_at"] == (None if seconds is None else at.clock.at + seconds)


@pytest.mark.parametrize("type", ["workflow", "conversation", "discussion", "consulting"])
async def test_a_turn_parked_over_night_goes_on(type: str) -> None:
    """N4: a life span of two hours does not end while a person decides for twelve."""
    clock = FakeClock()
    async with _stage(clock, MemoryStore(clock=clock)) as at:
        channel = await _parked(at, type=type)
        await _sweep(at, 12 * HOUR)
        assert await _state(at, channel) == "active"
        await _allow(at)
        await at.settle()
        assert ("worker", "paid 3") in await at.said(channel)
        assert (await ledger.verify(at.hub.store)).problems == ()


async def test_what_is_left_of_a_life_span_is_told() -> None:
    """N4: while it stands still there is no time of expiry, and the report says what is left."""
    clock = FakeClock()
    async with _stage(clock, MemoryStore(clock=clock)) as at:
        channel = await _parked(at)
        await _sweep(at, 12 * HOUR)
        report = await at.hub.store.read(lambda tx: report_of(tx, channel.channel_id))
        assert (report.expires_at, report.ttl_left) == (None, 7200)
        assert _expiry(report) == "2:00:00 after it goes on"


async def test_a_life_span_runs_on_where_it_stood() -> None:
    """N4: half an hour had passed before the wait, so an hour and a half are left after it."""
    clock = FakeClock()
    async with _stage(clock, MemoryStore(clock=clock)) as at:
        await _people(at)
        channel = await at.people["ana"].open(type="discussion", target=["worker"], ttl="2h")
        clock.pass_by(HOUR / 2)
        await channel.send("pay 3")
        await at.settle()
        assert (await channel.info()).expires_at is None
        await _sweep(at, 12 * HOUR)
        await _allow(at)
        await at.settle()
        await _sweep(at, 1.5 * HOUR - 1)
        assert await _state(at, channel) == "active"
        await _sweep(at, 2)
        assert await _state(at, channel) == "expired"


async def test_a_parked_turn_that_is_taken_by_hand_starts_the_clocks_again() -> None:
    """N4: nothing waits any more, so what is left of the life span runs."""
    clock = FakeClock()
    async with _stage(clock, MemoryStore(clock=clock)) as at:
        channel = await _parked(at, type="discussion")
        await _sweep(at, 12 * HOUR)
        own = await at.agents["worker"].channel(channel.channel_id)
        await own.send("paid by hand")
        assert (await channel.info()).expires_at is not None
        await _sweep(at, 2 * HOUR - 1)
        assert await _state(at, channel) == "active"
        await _sweep(at, 2)
        assert await _state(at, channel) == "expired"
        assert (await ledger.verify(at.hub.store)).problems == ()


async def test_a_hub_that_was_down_for_three_hours_goes_on() -> None:
    """N4: the time without a hub is added to a life span of two hours."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock) as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"], ttl="2h")
        clock.pass_by(HOUR)
        await at.hub.poll()
    clock.pass_by(3 * HOUR)
    async with scene(store, clock=clock) as at:
        await _sweep(at, HOUR - 1)
        assert await _state(at, channel) == "active"
        await at.hub.reopen(channel.channel_id)  # open still: nothing changes
        await _sweep(at, 2)
        assert await _state(at, channel) == "expired"
        assert (await ledger.verify(store)).problems == ()


async def test_a_reopened_channel_gets_the_life_span_that_it_was_opened_with() -> None:
    """N4: time that was added to its clock is none of it."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock) as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"], ttl="2h")
        await channel.send("hi")
    clock.pass_by(30 * HOUR)
    async with scene(store, clock=clock) as at:
        await at.hub.close_channel(channel.channel_id)
        await at.hub.reopen(channel.channel_id)
        await _sweep(at, 2 * HOUR - 1)
        assert await _state(at, channel) == "active"
        await _sweep(at, 2)
        assert await _state(at, channel) == "expired"


async def test_a_paused_fork_does_not_expire() -> None:
    """N4: its life span begins when it is resumed."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"], ttl="2h")
        await channel.send("hi")
        last = (await at.log(channel))[-1].envelope_id
        fork = await at.hub.fork(channel.channel_id, last)
        await _sweep(at, 30 * HOUR)
        assert (await at.hub.get_channel(fork)).state.value == "active"
        await at.hub.resume_channel(fork)
        await _sweep(at, 2 * HOUR - 1)
        assert (await at.hub.get_channel(fork)).state.value == "active"
        await _sweep(at, 2)
        assert (await at.hub.get_channel(fork)).state.value == "expired"


async def test_an_invitation_waits_while_no_hub_runs() -> None:
    """N4: the seconds to answer it are those of a hub."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock) as at:
        ana = await at.person("ana")
        await at.person("bob", auto_ack_invites=False)
        opening = asyncio.create_task(ana.open(type="conversation", target=["bob"]))
        while not (found := await at.hub.list_channels()):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    clock.pass_by(3 * HOUR)
    async with scene(store, clock=clock) as at:
        await _sweep(at, 29)
        assert await _state(at, found[0]) == "pending"
        await _sweep(at, 2)
        assert (await at.hub.get_channel(found[0].channel_id)).close_reason == "invite_timeout"


async def test_a_question_keeps_its_time_while_no_hub_runs() -> None:
    """N4: `decide_by` of a channel's call moves by the time without a hub; the chain says so."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with _stage(clock, store, decide_within=2 * HOUR) as at:
        channel = await _parked(at, ttl=None)
        asked = await _approval(at)
        clock.pass_by(HOUR)
        await at.hub.poll()
    clock.pass_by(3 * HOUR)
    async with _stage(clock, store) as at:
        await _people(at)
        await at.settle()
        row = await _approval(at)
        assert row["decide_by"] == asked["decide_by"] + 3 * HOUR
        [entry] = await store.read(lambda tx: tx.select("ledger", {"kind": "approval-extended"}))
        assert entry["run_id"] == row["run_id"]
        await at.pass_by(HOUR - 1)
        assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "parked"
        await _allow(at)
        await at.settle()
        assert ("worker", "paid 3") in await at.said(channel)
        assert (await ledger.verify(store)).problems == ()


async def test_a_decision_keeps_its_time_while_no_hub_runs() -> None:
    """N4: `use_by` of an approval that nobody could use moves, too, and the call is made."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with _stage(clock, store, use_within=HOUR) as at:
        channel = await _parked(at, ttl=None)
    clock.pass_by(5 * HOUR)
    async with _stage(clock, store) as at:
        # The participants are not there yet: the decision is given, and nobody uses it.
        await _allow(at)
    clock.pass_by(20 * HOUR)
    async with _stage(clock, store) as at:
        assert (await _approval(at))["state"] == "approved"
        await _people(at)
        await at.settle()
        assert (await _approval(at))["state"] == "taken"
        assert ("worker", "paid 3") in await at.said(channel)


async def test_a_question_that_had_run_out_stays_so() -> None:
    """N4: no time is added to what had ended while a hub ran; the call is asked about again."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with _stage(clock, store, decide_within=HOUR) as at:
        await _parked(at, ttl=None)
        asked = await _approval(at)
        clock.pass_by(HOUR + 1)
        await at.hub.poll()
    clock.pass_by(3 * HOUR)
    async with _stage(clock, store) as at:
        refused = await store.write(
            lambda tx: approvals.decide(tx, asked["id"], verdict="approved", reviewer="eve")
        )
        assert getattr(refused, "state", None) == "expired"


async def test_a_question_of_another_run_is_not_moved() -> None:
    """N4: only calls of channels wait for a hub."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with _stage(clock, store):
        pass
    registry = aa.ToolRegistry()

    @registry.tool(confirm=True)
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    executor = aa.Executor(store=store, approval=DeferredApproval(store))
    with pytest.raises(aa.ApprovalPending):
        await executor.run_spec(registry.get("wipe"), {})
    before = (await store.read(lambda tx: tx.select("approvals", {})))[0]["decide_by"]
    clock.pass_by(3 * HOUR)
    async with _stage(clock, store) as at:
        assert (await _approval(at))["decide_by"] == before


async def test_silence_is_none_while_a_turn_is_parked() -> None:
    """N4: `max_silence` of a channel stands still with the rest, also if it would close it."""

    class Hasty(ConversationAdapter):
        manifest = ChannelManifest(
            "conversation", 2, expectations=[Expectation("max_silence", "auto_close", {})]
        )

    clock = FakeClock()
    async with _stage(clock, MemoryStore(clock=clock)) as at:
        at.hub.register_adapter(Hasty())
        await _people(at)
        made = await at.hub.create_channel(
            creator_id=at.id("ana"),
            manifest_type="conversation",
            manifest_version=2,
            participants=at.names("worker"),
        )
        await at.people["ana"].send(made.channel_id, "pay 3")
        await at.settle()
        await _sweep(at, 12 * HOUR)
        assert await _state(at, made) == "active"
        await at.people["ana"].send(made.channel_id, "and?")
        await _sweep(at, 12 * HOUR)
        assert await _state(at, made) == "active"
        await _allow(at)
        await at.settle()
        await _sweep(at, 599)
        assert await _state(at, made) == "active"
        await _sweep(at, 2)
        assert await at.reason(made.channel_id) == "expectation_violated:max_silence"


async def test_a_task_keeps_its_time_while_no_hub_runs() -> None:
    """N4: fifteen minutes of a task are those of a hub."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock) as at:
        await at.person("ana")
        task = TaskMetadata(task_id="t1", owner_id=at.id("ana"), spec=TaskSpec(title="count"))
        await at.hub.observe_task(task)
    clock.pass_by(3 * HOUR)
    async with scene(store, clock=clock) as at:
        await _sweep(at, 899)
        assert (await at.hub.get_task("t1")).state is not TaskState.EXPIRED
        await _sweep(at, 2)
        assert (await at.hub.get_task("t1")).state is TaskState.EXPIRED


async def test_a_clock_of_an_earlier_version_stops_at_the_next_start() -> None:
    """N4: a channel that was parked before life spans stood still does not expire."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with _stage(clock, store) as at:
        channel = await _parked(at)
        old = {"expires_at": clock.at + HOUR, "ttl": None, "ttl_left": None}
        where = {"channel_id": channel.channel_id}
        await store.write(lambda tx: tx.update("channels", where, old))
    async with _stage(clock, store) as at:
        await _sweep(at, 12 * HOUR)
        assert await _state(at, channel) == "active"
