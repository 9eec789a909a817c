"""How long what is recorded is kept: policies, holds, what stays, and the space given back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import AgentAdapterError, NotFoundError
from agent_adapter.exec import ledger, retention
from agent_adapter.exec.retention import Pruned
from agent_adapter.store import Retention, open_store
from agent_adapter.store.base import Store
from agent_adapter.store.retention import outlook
from agent_adapter.store.sqlite import SqliteStore
from tests.network._scene import FakeClock, Scene, scene

pytestmark = pytest.mark.anyio

DAY = 86_400.0
registry = aa.ToolRegistry()


@registry.tool
async def pay(amount: int) -> str:
    """Pay."""
    if amount < 0:
        raise RuntimeError("nobody knows")
    return "x" * amount


async def call(store: Store, run: str, amount: int = 1, **ctx: Any) -> None:
    """One write in a run."""
    executor = aa.Executor(registry, store=store)
    try:
        await executor.run("pay", {"amount": amount}, ctx=aa.ToolContext(run_id=run, **ctx))
    except AgentAdapterError:
        return


@asynccontextmanager
async def opened(path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    """The store, closed at the end."""
    store = open_store(path, clock=clock)
    yield store
    await store.aclose()


async def runs(store: Store) -> set[str]:
    """The runs that are left."""
    return await store.read(lambda tx: {row["name"] for row in tx.select("runs")} - {"upkeep"})


async def keep(store: Store, tenant: str = "", **ages: timedelta) -> None:
    """Set the policy of a tenant."""
    await retention.set_retention(store, {tenant: Retention(**ages)}, by="ann")


async def test_each_tenant_has_its_own_policy(tmp_path: Path) -> None:
    """Old runs of one tenant go, those of another stay; a dry run says so before."""
    clock = FakeClock()
    async with opened(tmp_path / "s.db", clock) as store:
        await call(store, "old a", tenant="a")
        await call(store, "old b", tenant="b")
        clock.pass_by(10 * DAY)
        await call(store, "new a", tenant="a")
        await keep(store, "a", runs=timedelta(days=5))
        await keep(store, "b", runs=timedelta(days=50))
        expected = {"a": Pruned(runs=1), "b": Pruned()}
        assert await retention.apply(store, by="ann", dry=True) == expected
        assert await runs(store) == {"old a", "old b", "new a"}
        assert await retention.apply(store, by="ann") == expected
        assert await runs(store) == {"old b", "new a"}
        report = await ledger.verify(store)
        assert (report.problems, report.pruned_runs) == ((), 1)


async def test_payloads_go_before_their_run_and_do_not_renew_it(tmp_path: Path) -> None:
    """Erased after a day; the run goes ten days after its last use, not after the erasure."""
    clock = FakeClock()
    async with opened(tmp_path / "s.db", clock) as store:
        await call(store, "one")
        await keep(store, payloads=timedelta(days=1), runs=timedelta(days=10))
        clock.pass_by(2 * DAY)
        assert await retention.apply(store, by="ann") == {"": Pruned(payloads=1)}
        assert await retention.apply(store, by="ann") == {"": Pruned()}
        report = await ledger.verify(store)
        assert (report.problems, report.erased, report.calls) == ((), 2, 1)
        clock.pass_by(9 * DAY)
        assert await retention.apply(store, by="ann") == {"": Pruned(runs=1)}
        assert (await ledger.verify(store)).ok


@pytest.mark.parametrize("kind", ["run", "conversation", "tenant"])
async def test_what_is_held_stays_until_it_is_released(kind: Any, tmp_path: Path) -> None:
    """A legal hold on a run, a conversation or a tenant outweighs every policy."""
    name = {"run": "held", "conversation": "talk", "tenant": "a"}[kind]
    tenant = "a" if kind == "conversation" else ""
    clock = FakeClock()
    async with opened(tmp_path / "s.db", clock) as store:
        await call(store, "held", tenant="a", thread_id="talk")
        await call(store, "other", tenant="b", thread_id="talk")
        for each in ("a", "b"):
            await keep(store, each, runs=timedelta(days=1), payloads=timedelta(days=1))
        await retention.hold(store, kind, name, tenant=tenant, by="ann", reason="case 17")
        clock.pass_by(2 * DAY)
        done = await retention.apply(store, by="ann")
        assert done == {"a": Pruned(), "b": Pruned(runs=1)}
        (held,) = await retention.holds(store)
        assert (held.kind, held.name, held.reason) == (kind, name, "case 17")
        assert (await ledger.verify(store)).ok
        await retention.release(store, kind, name, tenant=tenant, by="ann")
        assert (await retention.apply(store, by="ann"))["a"] == Pruned(runs=1)
        with pytest.raises(AgentAdapterError, match="is held; `agent-adapter db holds` lists"):
            await retention.release(store, kind, name, tenant=tenant, by="ann")


async def test_a_write_in_doubt_stays_however_old(tmp_path: Path) -> None:
    """Neither its run nor its arguments go."""
    clock = FakeClock()
    async with opened(tmp_path / "s.db", clock) as store:
        await call(store, "doubt", -1)
        await keep(store, runs=timedelta(days=1), payloads=timedelta(days=1))
        clock.pass_by(900 * DAY)
        assert await retention.apply(store, by="ann") == {"": Pruned()}


async def talk(at: Scene, close: bool = True) -> str:
    """A channel in which something was said."""
    channel = await at.people["ana"].open(type="conversation", target=at.id("bob"))
    for n in range(3):
        await channel.send(f"secret {n}")
    if close:
        await at.hub.close_channel(channel.channel_id, "done")
    return channel.channel_id


@pytest.mark.alters_store
async def test_a_transcript_is_folded_to_a_summary_and_a_digest(tmp_path: Path) -> None:
    """Its texts are gone from the file; who took part, how it ended and the digest stay."""
    clock = FakeClock()
    store = SqliteStore(tmp_path / "s.db", clock=clock)
    async with scene(store, clock=clock) as at:
        await at.person("ana")
        await at.person("bob")
        ended, going = await talk(at), await talk(at, close=False)
        anchors = await ledger.anchors(store)
        await keep(store, channels=timedelta(days=1), audit=timedelta(days=1))
        assert (await retention.apply(store, by="ann"))[""] == Pruned()
        clock.pass_by(2 * DAY)
        done = (await retention.apply(store, by="ann"))[""]
        assert (done.channels, done.audit > 0) == (1, True)
        assert (await retention.apply(store, by="ann"))[""] == Pruned()
        about = await at.hub.get_channel(ended)
        assert (about.close_reason, sorted(about.names().values())) == ("done", ["ana", "bob"])
        assert await at.hub.read_wal(ended) == []
        assert len(await at.hub.read_wal(going)) > 3
        with pytest.raises(NotFoundError, match=f"the transcript of channel {ended} was removed"):
            await at.hub.replay(ended)
        row = await store.read(lambda tx: tx.get("channels", ended))
        assert row is not None and anchors[f"#channel:{ended}"][1] in row["summary"]
        report = await ledger.verify(store, anchored=anchors)
        assert (report.problems, report.pruned_channels) == ((), 1)
    await store.aclose()
    connection = sqlite3.connect(tmp_path / "s.db")
    texts = connection.execute("SELECT count(*) FROM envelopes WHERE channel_id = ?", (ended,))
    assert texts.fetchone() == (0,)
    with connection:
        connection.execute("UPDATE channels SET summary = replace(summary, '3', '4')")
    connection.close()
    async with opened(tmp_path / "s.db", clock) as again:
        assert not (await ledger.verify(again)).ok


async def test_a_held_channel_keeps_its_transcript(tmp_path: Path) -> None:
    """A channel is held as a conversation, by its id."""
    clock = FakeClock()
    store = SqliteStore(tmp_path / "s.db", clock=clock)
    async with scene(store, clock=clock) as at:
        await at.person("ana")
        await at.person("bob")
        ended = await talk(at)
        await keep(store, channels=timedelta(days=1))
        await retention.hold(store, "conversation", ended, by="ann")
        clock.pass_by(2 * DAY)
        assert (await retention.apply(store, by="ann"))[""] == Pruned()
        assert len(await at.hub.read_wal(ended)) > 3
    await store.aclose()


async def test_an_anchor_of_a_pruned_run_is_no_false_alarm(tmp_path: Path) -> None:
    """The tombstone says what went; a run that went without one is still reported."""
    clock = FakeClock()
    async with opened(tmp_path / "s.db", clock) as store:
        await call(store, "one")
        await call(store, "two")
        anchors = await ledger.anchors(store)
        clock.pass_by(2 * DAY)
        await call(store, "two", 5)
        await keep(store, runs=timedelta(days=1))
        await retention.apply(store, by="ann")
        assert (await ledger.verify(store, anchored=anchors)).ok
        forged = {"one": (anchors["one"][0] + 1, "00"), "three": (1, "00")}
        problems = (await ledger.verify(store, anchored=forged)).problems
        assert problems == ("one: the run is gone", "three: the run is gone")


async def test_the_files_space_is_given_back(tmp_path: Path) -> None:
    """After a megabyte of results went, the file is smaller than before it came."""
    clock = FakeClock()
    path = tmp_path / "s.db"
    async with opened(path, clock) as store:
        for n in range(20):
            await call(store, f"run {n}", 100_000 + n)
        await retention.give_back(store)
        large = os.stat(path).st_size
        await keep(store, runs=timedelta(days=1))
        clock.pass_by(2 * DAY)
        assert (await retention.apply(store, by="ann"))[""].runs == 20
        assert os.stat(path).st_size < large - 1_500_000
        assert (await ledger.verify(store)).ok


async def test_a_policy_given_at_the_opening_stays_set(tmp_path: Path) -> None:
    """`open_store(retention=…)` for all, or by tenant; the ledger notes each change once."""
    week = Retention(runs=timedelta(days=7))
    for _ in range(2):
        store = open_store(tmp_path / "s.db", retention={"a": week})
        await store.aclose()
    store = open_store(tmp_path / "s.db", retention=week)
    await store.flush()
    assert await retention.policies(store) == {"": week, "a": week}
    kinds = [entry.kind for entry in await ledger.entries(store, "upkeep")]
    assert kinds == ["retention-set"] * 2
    await retention.set_retention(store, {"a": Retention()}, by="ann")
    assert await retention.policies(store) == {"": week}
    await store.aclose()


@pytest.mark.parametrize("age", [timedelta(0), timedelta(seconds=-1), 90, "90d"])
def test_an_age_that_is_none_is_refused(age: Any) -> None:
    """The error names the part, the value and what to give."""
    with pytest.raises(ValueError, match=r"retention of runs is .*: give a timedelta of a minute"):
        Retention(runs=age)


async def test_a_hub_carries_the_policy_out(tmp_path: Path) -> None:
    """Its sweeper does what `agent-adapter db prune` does."""
    clock = FakeClock()
    store = SqliteStore(tmp_path / "s.db", clock=clock)
    async with scene(store, clock=clock) as at:
        await call(store, "old")
        await keep(store, runs=timedelta(days=1))
        clock.pass_by(2 * DAY)
        (line,) = await store.read(outlook)
        assert (line.ages["runs"], line.ages["audit"], line.older["runs"]) == (1.0, None, 2)
        await at.hub._scheduler.apply_retention()
        assert await runs(store) == set()
    await store.aclose()
