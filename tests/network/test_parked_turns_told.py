"""What waits for a person is told: in the log, the audit log, and later in the channel."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.flow.envelope import EV_EXPECTATION_VIOLATED
from agent_adapter.network.adapters.workflow import WorkflowAdapter
from agent_adapter.network.channels.expectations import check_expectations, deadlines_of
from agent_adapter.network.channels.metadata import ChannelManifest, Expectation
from agent_adapter.store import approvals
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


def _tools(*, confirm: bool) -> aa.ToolRegistry:
    registry = aa.ToolRegistry()

    @registry.tool(confirm=confirm, effects="write")
    def pay(amount: int) -> str:
        """Pay."""
        if not confirm:
            raise ValueError("cut off")
        return f"paid {amount}"

    return registry


async def _parked(at: Scene, *, confirm: bool = True) -> Any:
    """A channel whose worker waits for a person."""
    registry = _tools(confirm=confirm)

    async def worker(turn: Any) -> str:
        for _ in range(2):
            try:
                return str(await turn.call(registry.get("pay"), amount=3))
            except aa.ToolFailed:
                continue
        return "paid"

    await at.person("ana")
    await at.agent("worker", worker)
    graph = TransitionGraph.sequence(at.names("ana", "worker"))
    channel = await at.open("ana", ["worker"], graph)
    await channel.send("pay 3")
    await at.settle()
    return channel


def _scene(clock: FakeClock) -> Any:
    store = MemoryStore(clock=clock)
    return scene(store, clock=clock, approval=DeferredApproval(store))


async def _kinds(at: Scene, channel: Any) -> list[str]:
    return [r["kind"] for r in await at.hub.audit_log.of_channel(channel.channel_id)]


async def test_a_parked_turn_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A warning names the cause; the audit log has the turn and what it waits for."""
    async with _scene(FakeClock()) as at:
        channel = await _parked(at)
        [told] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert "waits for a person: ApprovalPending: pay waits for approval apr_" in told
        assert (await _kinds(at, channel))[-2:] == ["turn_parked", "approval_waiting"]
        record = (await at.hub.audit_log.of_channel(channel.channel_id))[-1]
        assert (record["tool"], record["agent_id"]) == ("pay", at.id("worker"))


async def test_a_doubt_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A write with unknown outcome that parks a turn is a record of its own."""
    async with scene() as at:
        channel = await _parked(at, confirm=False)
        assert "ToolInDoubt: it is not known what pay did" in caplog.text
        assert (await _kinds(at, channel))[-2:] == ["turn_parked", "call_in_doubt"]


async def test_a_turn_parked_for_an_hour_is_warned_about() -> None:
    """The channel is told once, and never closed for it."""
    async with _scene(FakeClock()) as at:
        channel = await _parked(at)
        await at.pass_by(3599)
        assert "expectation.violated" not in await at.events(channel)
        await at.pass_by(2)
        warned = (await at.log(channel))[-1]
        assert warned.event_type == EV_EXPECTATION_VIOLATED
        assert warned.event_data["expectation"] == "parked_within"
        assert warned.event_data["detail"]["threshold_seconds"] == 3600
        await at.pass_by(50_000)
        assert (await at.events(channel)).count("expectation.violated") == 1
        assert await at.reason(channel) is None


async def test_a_decision_ends_the_wait() -> None:
    """A turn that goes on is not warned about, and a later wait has its own hour."""
    clock = FakeClock()
    async with _scene(clock) as at:
        channel = await _parked(at)
        await at.pass_by(3000)
        rows = await at.hub.store.read(lambda tx: tx.select("approvals", {"state": "pending"}))
        for row in rows:
            await at.hub.store.write(
                lambda tx, id=row["id"]: approvals.decide(
                    tx, id, verdict="approved", reviewer="eve"
                )
            )
        await at.settle()
        await at.pass_by(3000)
        assert "expectation.violated" not in await at.events(channel)
        assert await at.reason(channel) == "sequence_complete"


async def test_a_fired_deadline_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The log says which expectation of which channel, and who did not meet it."""
    async with _scene(FakeClock()) as at:
        channel = await _parked(at)
        caplog.clear()
        await at.pass_by(3601)
        [told] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert f"expectation parked_within of {channel.channel_id} was not met by worker" in told


async def test_an_expired_channel_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Its end is in the log, also where nobody reads the channel."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"], ttl=60)
        at.clock.pass_by(61)
        await at.hub.expire_due()
        assert f"channel {channel.channel_id} has expired" in caplog.text


def _manifest(**expectation: Any) -> ChannelManifest:
    return ChannelManifest("own", expectations=[Expectation("parked_within", **expectation)])


def test_a_channel_type_may_have_its_own_limit() -> None:
    """It takes the place of the default."""
    manifest = _manifest(on_violation="auto_close", params={"seconds": 60})
    check_expectations(manifest)
    metadata = _metadata(manifest)
    assert [(d.name, d.handler, d.seconds) for d in deadlines_of(metadata)] == [
        ("parked_within", "auto_close", 60.0)
    ]


def test_every_channel_type_has_the_default() -> None:
    """Warn after an hour, never close."""
    found = [d for d in deadlines_of(_metadata(WorkflowAdapter.manifest)) if "parked" in d.name]
    assert [(d.handler, d.seconds) for d in found] == [("warn", 3600.0)]


def _metadata(manifest: ChannelManifest) -> Any:
    from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState

    return ChannelMetadata("chn_1", manifest, "A", [], ChannelState.ACTIVE, "")
