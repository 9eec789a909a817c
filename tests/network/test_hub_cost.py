"""Accepting costs the same at the 50th envelope of a channel and at the 5,000th."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.flow.envelope import EV_PACKET, Envelope
from agent_adapter.network.hub import scheduler
from agent_adapter.store import open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import (
    AgentTarget,
    FakeClock,
    FromSpeaker,
    Scene,
    Transition,
    TransitionGraph,
    scene,
)

pytestmark = pytest.mark.anyio

_READS = ("get", "select")


@dataclass
class Cost:
    """What one operation asked of its transaction."""

    statements: list[str] = field(default_factory=list)
    rows: int = 0
    read_bytes: int = 0
    wrote_bytes: int = 0


class _Counted:
    """A transaction that counts."""

    def __init__(self, inner: Any, cost: Cost) -> None:
        self._inner = inner
        self._cost = cost

    @property
    def now(self) -> float:
        return float(self._inner.now)

    @now.setter
    def now(self, value: float) -> None:
        self._inner.now = value

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in ("get", "insert", "update", "delete", "select", "count"):
            return value

        def counted(table: str, *args: Any, **more: Any) -> Any:
            result = value(table, *args, **more)
            cost = self._cost
            cost.statements.append(f"{name} {table}")
            if name in _READS:
                rows = [result] if isinstance(result, dict) else result or []
                cost.rows += len(rows)
                cost.read_bytes += sum(len(str(v)) for row in rows for v in row.values())
            elif args:
                cost.wrote_bytes += sum(len(str(v)) for part in args for v in part.values())
            return result

        return counted


class CountingStore:
    """A store whose operations are counted, one `Cost` each."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.costs: list[Cost] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, op: Callable[[Any], Any]) -> Any:
        """Run `op` on a transaction that counts."""
        return await self._inner.write(self._counting(op))

    async def read(self, op: Callable[[Any], Any]) -> Any:
        """Run `op` on a transaction that counts."""
        return await self._inner.read(self._counting(op))

    def _counting(self, op: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(tx: Any) -> Any:
            cost = Cost()
            try:
                return op(_Counted(tx, cost))
            finally:
                self.costs.append(cost)

        return run


def _store(kind: str, tmp_path: Path, clock: FakeClock) -> Any:
    return (
        MemoryStore(clock=clock)
        if kind == "memory"
        else open_store(tmp_path / "hub.db", clock=clock)
    )


def _packet(at: Scene, channel_id: str, turn: int) -> Envelope:
    sender = at.id("ana" if turn % 2 == 0 else "bob")
    routing = {"kind": "text"}
    data = {
        "routing": routing,
        "context_updates": {"set": {"n": 5}, "delete": []},
        "body": "x" * 80,
    }
    return Envelope(channel_id, sender, None, EV_PACKET, data, idempotency_key=f"key-{turn:06}")


async def _costs_at(at: Scene, store: CountingStore, marks: tuple[int, int]) -> list[Cost]:
    await at.person("ana")
    await at.person("bob")
    graph = TransitionGraph.round_robin(at.names("ana", "bob"))
    channel = await at.open("ana", ["bob"], graph, context_vars={"n": 5})
    await at.hub.idle()
    found = []
    for turn in range(marks[1] + 1):
        store.costs.clear()
        await at.hub.post_envelope(_packet(at, channel.channel_id, turn))
        await asyncio.sleep(0)  # a memory store never lets others run
        if turn in marks:
            # The hub also looks for commands now and then; that is no part of it.
            accepts = [item for item in store.costs if "insert envelopes" in item.statements]
            assert len(accepts) == 1, "accepting is one operation"
            found.append(accepts[0])
    return found


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_statements_rows_and_bytes_per_accept_do_not_grow(kind: str, tmp_path: Path) -> None:
    """The same statements, rows and bytes at 50 and at 5,000 envelopes."""
    clock = FakeClock()
    inner = _store(kind, tmp_path, clock)
    store = CountingStore(inner)
    async with scene(store, clock=clock) as at:
        early, late = await _costs_at(at, store, (50, 5000))
    await inner.aclose()
    assert late.statements == early.statements
    assert late.rows == early.rows
    assert abs(late.read_bytes - early.read_bytes) <= 40, "digits of growing numbers"
    assert abs(late.wrote_bytes - early.wrote_bytes) <= 40


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_window_reads_no_more_of_a_long_channel(kind: str, tmp_path: Path) -> None:
    """What a speaker sees costs the same however much was said before."""
    clock = FakeClock()
    inner = _store(kind, tmp_path, clock)
    store = CountingStore(inner)
    async with scene(store, clock=clock) as at:
        await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        channel = await at.open("ana", ["bob"], graph)
        rows = []
        for turn in range(1001):
            await at.hub.post_envelope(_packet(at, channel.channel_id, turn))
            await asyncio.sleep(0)
            if turn in (50, 1000):
                store.costs.clear()
                seen = await at.hub.window(channel.channel_id, at.id("ana"), 4)
                assert len(seen) == 4
                looks = [i for i in store.costs if "select envelopes" in i.statements]
                rows.append([(item.rows, item.statements) for item in looks])
    await inner.aclose()
    assert rows[0] == rows[1] != []


async def test_a_round_costs_the_same_in_a_long_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started, seen, answered, ended: as many statements at turn 20 as at turn 1,000."""
    # A poll that falls into a round offers its turn again, which costs a look: five times a second.
    monkeypatch.setattr(scheduler, "_POLL_SECONDS", 0)
    clock = FakeClock()
    inner = MemoryStore(clock=clock)
    store = CountingStore(inner)
    per_turn: dict[int, int] = {}

    def speaker(name: str) -> Callable[[Any], Any]:
        async def speak(turn: Any) -> str:
            per_turn[turn.state().turn_count] = sum(len(item.statements) for item in store.costs)
            return name

        return speak

    async with scene(store, clock=clock) as at:
        await at.agent("one", speaker("one"))
        await at.agent("two", speaker("two"))
        await at.person("user")
        one, two, user = at.names("one", "two", "user")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(FromSpeaker(one), AgentTarget(two)),
                Transition(FromSpeaker(user), AgentTarget(one)),
                Transition(FromSpeaker(two), AgentTarget(one)),
            ],
            max_turns=1001,
        )
        channel = await at.open("user", ["one", "two"], graph)
        await channel.send("go")
        await at.hub.idle()
        assert await at.reason(channel) == "max_turns"
    steps = {per_turn[n + 1] - per_turn[n] for n in range(20, 1000)}
    assert len(steps) == 1, "every round, not only the last"


async def test_a_thousand_silent_channels_cost_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of an idle hub read no row of them, write nothing for them, and nothing is woken."""
    monkeypatch.setattr(scheduler, "_POLL_SECONDS", 0)
    monkeypatch.setattr(scheduler, "_OBSERVE_SECONDS", 0)
    clock = FakeClock()
    store = CountingStore(MemoryStore(clock=clock))

    async def work(at: Scene) -> tuple[int, list[tuple[list[str], int]]]:
        """The tasks that there are, and what a day of sweeps asks of the store."""
        await at.hub.idle()
        await at.hub.count_uses()  # it looks once at what has happened
        store.costs.clear()
        for sweep in range(24):
            clock.pass_by(3600.0 if sweep else 0.0)
            await at.hub.expire_due()
            await at.hub.run_expectations()
            await at.hub.poll()
            await at.hub.count_uses()
        costs = [(item.statements, item.rows) for item in store.costs]
        return len(asyncio.all_tasks()), [item for item in costs if "leases" not in str(item)]

    async with scene(store, clock=clock) as at:
        user = await at.person("user")
        await at.agent("bot", lambda text: text)
        empty = await work(at)
        for _ in range(1000):
            await user.open(type="conversation", target=["bot"], ttl=0)
        # An hour of silence is noted, once.
        clock.pass_by(3600)
        while await at.hub.store.read(_open_deadlines):
            await at.hub.run_expectations()
        full = await work(at)
        assert len(await at.hub.list_channels(state="active", limit=2000)) == 1000
    assert full == empty
    assert {rows for _, rows in full[1]} == {0}


def _open_deadlines(tx: Any) -> int:
    return int(tx.count("expectations", {"fired_at": None, "due_at !=": None}))
