"""Who is alive, by lock and by heartbeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.sqlite.owners import Owner

pytestmark = pytest.mark.anyio


async def test_a_closed_store_is_dead_to_another(tmp_path: Path) -> None:
    """An owner is live while its store is open, also within one process."""
    first, second = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    assert await second.read(lambda tx: tx.is_live(first.owner_id)) is True
    await first.aclose()
    assert await second.read(lambda tx: tx.is_live(first.owner_id)) is False
    await second.aclose()


async def test_a_store_in_use_has_a_heartbeat(tmp_path: Path) -> None:
    """The first write brings the row of the process with it."""
    store = SqliteStore(tmp_path / "s.db", clock=lambda: 42.0)
    await store.write(lambda tx: None)
    row = await store.read(lambda tx: tx.get("owners", store.owner_id))
    assert row is not None and row["heartbeat_at"] == 42.0 and row["pid"] > 0
    await store.aclose()


async def test_where_locks_are_missing_the_heartbeat_counts(tmp_path: Path) -> None:
    """Without locks an owner is dead 30 seconds after its last beat."""
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    mine, other = Owner(tmp_path, locks=None), Owner(tmp_path, locks=None)
    assert mine.needs_beats
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is False
    await store.write(other.beat)
    now[0] = 30.0
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is True
    now[0] = 31.0
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is False
    await store.write(other.beat)
    assert await store.read(lambda tx: mine.is_live(tx, other.id)) is True


async def test_files_of_dead_owners_are_cleared_away(tmp_path: Path) -> None:
    """A new owner removes the files that nobody holds, and no others."""
    held = Owner(tmp_path)
    (tmp_path / "epo_00000000deadbeef").touch()
    Owner(tmp_path).release()
    assert [path.name for path in tmp_path.iterdir()] == [held.id]
    held.release()


async def test_an_owner_id_never_names_a_path(tmp_path: Path) -> None:
    """A stored owner id that is none is dead, whatever file it points to."""
    store = SqliteStore(tmp_path / "s.db")
    for odd in ("../s.db", "", "epo_", ".opening", "epo_../s.db"):
        assert await store.read(lambda tx, odd=odd: tx.is_live(odd)) is False
    await store.aclose()
