"""Who is alive, by lock and by heartbeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.sqlite.owners import Epoch

pytestmark = pytest.mark.anyio


async def test_a_closed_store_is_dead_to_another(tmp_path: Path) -> None:
    """An epoch is live while its store is open, also within one process."""
    first, second = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    assert await second.read(lambda tx: tx.is_live(first.epoch)) is True
    await first.aclose()
    assert await second.read(lambda tx: tx.is_live(first.epoch)) is False
    await second.aclose()


async def test_a_store_in_use_has_a_heartbeat(tmp_path: Path) -> None:
    """The first write brings the row of the process with it."""
    store = SqliteStore(tmp_path / "s.db", clock=lambda: 42.0)
    await store.write(lambda tx: None)
    row = await store.read(lambda tx: tx.get("epochs", store.epoch))
    assert row is not None and row["heartbeat_at"] == 42.0 and row["pid"] > 0
    await store.aclose()


async def test_where_locks_are_missing_the_heartbeat_counts(tmp_path: Path) -> None:
    """Without locks an epoch is dead 30 seconds after its last beat."""
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    mine, other = Epoch(tmp_path, locks=None), Epoch(tmp_path, locks=None)
    assert mine.needs_beats
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is False
    await store.write(other.beat)
    now[0] = 30.0
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is True
    now[0] = 31.0
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is False
    await store.write(other.beat)
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is True


async def test_files_of_dead_epochs_are_cleared_away(tmp_path: Path) -> None:
    """A new epoch removes the files that nobody holds, and no others."""
    held = Epoch(tmp_path)
    (tmp_path / "epo_00000000deadbeef").touch()
    Epoch(tmp_path).release()
    assert [path.name for path in tmp_path.iterdir()] == [held.id]
    held.release()


async def test_an_epoch_never_names_a_path(tmp_path: Path) -> None:
    """A stored epoch that is no epoch is dead, whatever file it points to."""
    store = SqliteStore(tmp_path / "s.db")
    for odd in ("../s.db", "", "epo_", ".opening", "epo_../s.db"):
        assert await store.read(lambda tx, odd=odd: tx.is_live(odd)) is False
    await store.aclose()
