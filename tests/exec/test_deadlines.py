"""Deadlines of approvals where clocks are set: what has passed counts, a jump is not believed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec import ledger
from agent_adapter.exec.executor import Executor
from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.uptime import Uptime
from tests.exec.shop import FakeClock, Till, in_run, is_whole

pytestmark = pytest.mark.anyio

ARGS = {"order": "A1", "amount": 5}
DAY = 86_400.0


class Machine(FakeClock):
    """A clock that can be set, and a running time that goes on whatever is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.up = 500.0
        self.boot = "first"

    def uptime(self) -> float:
        """How long the machine has been running."""
        return self.up

    def pass_(self, seconds: float) -> None:
        """Let time pass: the clock and the machine agree."""
        self.now += seconds
        self.up += seconds


class Desk:
    """A tool that asks, over records that wait 100 s for a decision and 100 s for their use."""

    def __init__(self, store: Any) -> None:
        self.till = Till(confirm=True)
        registry = aa.ToolRegistry()
        registry.add(self.till.spec)
        port = aa.DeferredApproval(store, decide_within=100, use_within=100)
        self.executor = Executor(registry, store=store, approval=port)
        self.inbox = aa.Inbox(store)

    async def charge(self, order: str = "A1") -> Any:
        """Make the call."""
        return await self.executor.run("charge", ARGS | {"order": order}, ctx=in_run())

    async def asked(self, order: str = "A1", *, approved: bool = False) -> str:
        """The id of the record that the call leaves."""
        with pytest.raises(aa.ApprovalPending) as held:
            await self.charge(order)
        if approved:
            await self.inbox.approve(held.value.id, reviewer="ann")
        return held.value.id


@pytest.fixture
def machine() -> Machine:
    """A machine whose clock can be set."""
    return Machine()


@pytest.fixture(params=["memory", "sqlite"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path, machine: Machine) -> Any:
    """A store of each kind on that machine."""
    made: Any = (
        MemoryStore(clock=machine)
        if request.param == "memory"
        else SqliteStore(tmp_path / "state.db", clock=machine)
    )
    yield made
    await made.aclose()


@pytest.mark.parametrize("approved", [False, True])
async def test_i20_an_expiry_is_written_down_when_it_is_met(
    store: Any, clock: Any, approved: bool
) -> None:
    """I20: its time passed and `ApprovalExpired` was raised; the clock is set back 300 s."""
    desk = Desk(store)
    id = await desk.asked(approved=approved)
    clock.pass_(101)
    with pytest.raises(aa.ApprovalExpired):
        await desk.executor.resume(id)
    clock.pass_(-300)
    for _ in range(2):
        with pytest.raises(aa.ApprovalExpired):
            await desk.executor.resume(id)
    with pytest.raises(aa.AgentAdapterError, match="already expired"):
        await desk.inbox.approve(id, reviewer="ann")
    assert desk.till.ran == [] and await is_whole(store)


@pytest.mark.parametrize("approved", [False, True])
async def test_i20_a_clock_that_steps_back_revives_nothing(
    kept: Any, machine: Machine, approved: bool
) -> None:
    """I20: nobody met the expiry before the clock was set back: what has passed counts."""
    desk = Desk(kept)
    id = await desk.asked(approved=approved)
    machine.pass_(101)
    machine.now -= 300
    assert (await desk.inbox.get(id)).state == "expired"
    with pytest.raises(aa.ApprovalExpired):
        await desk.executor.resume(id)
    assert desk.till.ran == []


async def test_i20_a_jump_ahead_expires_nothing_and_uses_nothing(
    kept: Any, machine: Machine
) -> None:
    """I20: more than five minutes ahead stops the use of approvals until a person confirms."""
    desk = Desk(kept)
    approved, pending = await desk.asked(approved=True), await desk.asked("A2")
    machine.now += DAY
    with pytest.raises(aa.ApprovalDenied, match=r"86,400 s ahead .* approvals confirm-time"):
        await desk.executor.resume(approved)
    assert [record.id for record in await desk.inbox.list()] == [pending]
    assert [record.id for record in await desk.inbox.list("approved")] == [approved]
    machine.now -= DAY
    assert await desk.executor.resume(approved) == "charged"
    await desk.inbox.approve(pending, reviewer="ann")


async def test_i20_a_person_confirms_the_time(kept: Any, machine: Machine) -> None:
    """I20: by the confirmed clock what is over has expired, and what is new is used."""
    desk = Desk(kept)
    old = await desk.asked(approved=True)
    machine.now += DAY
    assert await desk.inbox.confirm_time(reviewer="ann") == pytest.approx(DAY)
    with pytest.raises(aa.ApprovalExpired):
        await desk.executor.resume(old)
    new = await desk.asked("A2", approved=True)
    assert await desk.executor.resume(new) == "charged"
    entries = await ledger.entries(kept, "upkeep")
    assert [entry.kind for entry in entries] == ["time-confirmed"] and await is_whole(kept)


async def test_the_clock_may_run_ahead_by_five_minutes_between_marks(
    kept: Any, machine: Machine
) -> None:
    """A clock that is corrected a little is believed; time that has passed is no jump."""
    desk = Desk(kept)
    machine.pass_(30 * DAY)
    await desk.asked("A0")
    machine.pass_(30 * DAY)
    machine.now += 299
    id = await desk.asked(approved=True)
    assert await desk.executor.resume(id) == "charged"


async def test_after_a_restart_of_the_machine_its_clock_is_believed(tmp_path: Path) -> None:
    """Nothing is known of the time in between, except that it did not run backwards."""
    machine = Machine()

    def restart(by: float) -> SqliteStore:
        machine.now, machine.up = machine.now + by, 5.0
        machine.boot += " again"
        return SqliteStore(tmp_path / "state.db", clock=machine)

    store = restart(0)
    await Desk(store).asked()
    await store.aclose()
    store = restart(DAY)
    id = await Desk(store).asked("A2", approved=True)
    await store.aclose()
    store = restart(-DAY)
    desk = Desk(store)
    assert await desk.executor.resume(id) == "charged"
    late = await desk.asked("A3", approved=True)
    machine.pass_(101)
    with pytest.raises(aa.ApprovalExpired):
        await desk.executor.resume(late)
    await store.aclose()


def test_the_real_clock_has_a_running_time_beside_it() -> None:
    """It grows, and belongs to one start of the machine; an own clock is its own measure."""
    uptime = Uptime.beside(time.time)
    first = uptime.seconds()
    assert 0 < first <= uptime.seconds()
    clock = FakeClock()
    assert Uptime.beside(clock).seconds() == clock()
