"""What an operator does to a store as a whole."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import agent_adapter as aa
from agent_adapter.exec import ledger, upkeep
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

registry = aa.ToolRegistry()


@registry.tool
async def pay(amount: int) -> int:
    """Pay."""
    if amount < 0:
        raise RuntimeError("nobody knows")
    return amount


@registry.tool(once_key=lambda arguments: str(arguments["month"]))
async def salary(month: int) -> int:
    """Pay a month's salary, once."""
    return month


@registry.tool(effects="read")
async def look(amount: int) -> int:
    """Look."""
    return amount


@registry.tool(confirm=True)
async def send(amount: int) -> int:
    """Send."""
    return amount


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


async def call(store: Store, tool: str, run: str, **arguments: int) -> None:
    """One call in a run; how it ends does not matter."""
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    try:
        await executor.run(tool, arguments, ctx=aa.ToolContext(run_id=run))
    except aa.AgentAdapterError:
        return


async def runs(store: Store) -> set[str]:
    """The runs whose chains are kept."""
    return await store.read(lambda tx: {row["run_id"] for row in tx.select("chain_heads")})


async def test_stopped_writes_are_refused_and_reads_go_on() -> None:
    """The switch holds for every executor of the store, until it is put back."""
    store = MemoryStore()
    executor = aa.Executor(registry, store=store)
    await upkeep.stop_writes(store, by="ana", reason="wrong prices")
    with pytest.raises(aa.ApprovalDenied, match=r"pay: all writes are stopped \(wrong prices\)"):
        await executor.run("pay", {"amount": 1})
    assert await executor.run("look", {"amount": 1}) == 1
    assert await upkeep.allow_writes(store, by="ana")
    assert await executor.run("pay", {"amount": 1}) == 1


async def test_a_stopped_write_uses_up_no_approval() -> None:
    """An approved call that meets the switch can run when it is put back."""
    store = MemoryStore()
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    with pytest.raises(aa.ApprovalPending) as pending:
        await executor.run("send", {"amount": 1})
    await aa.Inbox(store).approve(pending.value.id, reviewer="ana")
    await upkeep.stop_writes(store, by="ana")
    with pytest.raises(aa.ApprovalDenied, match="no reason given"):
        await executor.resume(pending.value.id)
    await upkeep.allow_writes(store, by="ana")
    assert await executor.resume(pending.value.id) == 1


async def test_the_switch_is_in_the_ledger() -> None:
    """Who stopped writes, why, and who allowed them."""
    store = MemoryStore()
    assert await upkeep.stopped(store) is None
    await upkeep.stop_writes(store, by="ana", reason="one")
    await upkeep.stop_writes(store, by="bo", reason="two")
    assert await upkeep.stopped(store) == "two"
    assert await upkeep.allow_writes(store, by="bo")
    assert not await upkeep.allow_writes(store, by="bo")
    entries = await ledger.entries(store, "upkeep")
    assert [entry.kind for entry in entries] == ["writes-stopped"] * 2 + ["writes-allowed"]
    assert [entry.facts["reviewer"] for entry in entries] == ["ana", "bo", "bo"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_pruning_deletes_old_runs_whole(kind: str, tmp_path: Path) -> None:
    """Nothing of an old run is left, a newer one is untouched, and the ledger verifies."""
    clock = Clock()
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path / 'state.db'}"
    store = aa.open_store(url, clock=clock)
    await call(store, "pay", "old", amount=1)
    clock.now = 2000.0
    await call(store, "pay", "new", amount=1)
    assert await upkeep.prune(store, before=2000.0, by="ana", dry=True) == 1
    assert await runs(store) == {"old", "new"}
    assert await upkeep.prune(store, before=2000.0, by="ana") == 1
    assert await runs(store) == {"new", "upkeep"}
    assert await store.read(lambda tx: tx.count("payloads", {"run_id": "old"})) == 0
    await call(store, "pay", "old", amount=1)
    report = await ledger.verify(store)
    await store.aclose()
    assert (report.ok, report.calls) == (True, 2)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("pay", {"amount": -1}), ("salary", {"month": 1}), ("send", {"amount": 1})],
    ids=["in doubt", "once over all runs", "waiting for a person"],
)
async def test_pruning_keeps_what_may_still_be_asked_for(
    tool: str, arguments: dict[str, int]
) -> None:
    """A run with such a call stays, however old."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    await call(store, tool, "old", **arguments)
    assert await upkeep.prune(store, before=2000.0, by="ana") == 0
    assert await runs(store) == {"old"}


async def test_pruning_deletes_a_question_that_nobody_answered_in_time() -> None:
    """Its record goes with its run."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    await call(store, "send", "old", amount=1)
    clock.now += 72 * 3600 + 1
    assert await upkeep.prune(store, before=clock.now - 10, by="ana") == 1
    assert await store.read(lambda tx: tx.count("approvals")) == 0


async def test_a_backup_is_a_store_of_its_own(tmp_path: Path) -> None:
    """It opens with its own key, verifies, and holds what was written before."""
    store = aa.open_store(f"sqlite:///{tmp_path / 'state.db'}")
    await call(store, "pay", "run", amount=1)
    copy = await upkeep.back_up(store, tmp_path / "copy.db")
    await store.aclose()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "copy.db.key").stat().st_mode & 0o777 == 0o600
    opened = aa.open_store(copy)
    report = await ledger.verify(opened)
    await opened.aclose()
    assert (report.ok, report.calls) == (True, 1)


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    """What lies at the path, or at its key's, is left as it is; the error names it."""
    store = aa.open_store(f"sqlite:///{tmp_path / 'state.db'}")
    (tmp_path / "copy.db.key").write_text("mine")
    with pytest.raises(aa.StoreError, match=r"copy\.db\.key exists already; give a path"):
        await upkeep.back_up(store, tmp_path / "copy.db")
    with pytest.raises(aa.StoreError, match=r"state\.db exists already"):
        await upkeep.back_up(store, tmp_path / "state.db")
    with pytest.raises(aa.StoreError, match="choose a folder that exists"):
        await upkeep.back_up(store, tmp_path / "nowhere" / "copy.db")
    await store.aclose()
    assert (tmp_path / "copy.db.key").read_text() == "mine"
    assert not (tmp_path / "copy.db").exists()


async def test_a_backup_is_taken_while_another_connection_writes(tmp_path: Path) -> None:
    """A writer in its transaction does not hold it up, and what it has not committed is not in."""
    store = aa.open_store(f"sqlite:///{tmp_path / 'state.db'}")
    writer = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    await store.flush()
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO meta (name, value) VALUES ('half', 'done')")
    from agent_adapter.store.sqlite.backup import copy_store

    copy_store(tmp_path / "state.db", tmp_path / "copy.db")
    writer.execute("ROLLBACK")
    writer.close()
    await store.aclose()
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT count(*) FROM meta WHERE name = 'half'").fetchone() == (0,)
    copy.close()


async def test_a_store_in_memory_has_no_backup(tmp_path: Path) -> None:
    """The error says what can be copied."""
    with pytest.raises(aa.StoreError, match="memory:// is not a file; only a sqlite:/// store"):
        await upkeep.back_up(MemoryStore(), tmp_path / "copy.db")
