"""The file is the file: a database that was moved, deleted or replaced takes no more writes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store with one row."""
    made = SqliteStore(tmp_path / "state.db", key=bytes(32))
    await made.write(lambda tx: tx.insert("meta", {"name": "before"}))
    yield made
    await made.aclose()


def _move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def _replace(path: Path) -> None:
    _move(path)
    path.write_bytes(path.with_name("moved.db").read_bytes())


async def _writes(store: SqliteStore, name: str) -> bool:
    return await store.write(lambda tx: tx.insert("meta", {"name": name}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [(_move, "moved or deleted"), (os.unlink, "moved or deleted"), (_replace, "was replaced")],
    ids=["moved", "deleted", "replaced"],
)
async def test_r12_a_write_to_another_file_is_refused(
    store: SqliteStore, change: Callable[[Path], None], reason: str
) -> None:
    """R12: Nothing is told done that the file at the path does not hold; the error says why."""
    change(store.path)
    with pytest.raises(StoreError, match=reason):
        await _writes(store, "after")


async def test_r12_two_processes_never_write_two_files_under_one_path(
    store: SqliteStore,
) -> None:
    """R12: Whoever opened the first is refused when another has made a new one in its place."""
    _move(store.path)
    other = SqliteStore(store.path, key=bytes(32))
    assert await _writes(other, "theirs")
    with pytest.raises(StoreError, match="was replaced"):
        await _writes(store, "ours")
    assert await other.read(lambda tx: tx.get("meta", "ours")) is None
    await other.aclose()


async def test_a_file_that_is_put_back_is_written_again(store: SqliteStore) -> None:
    """The refusal ends with its reason."""
    _move(store.path)
    with pytest.raises(StoreError, match="put the file back"):
        await _writes(store, "after")
    store.path.with_name("moved.db").rename(store.path)
    assert await _writes(store, "after") is True


async def test_the_databases_own_check_finds_damage(tmp_path: Path) -> None:
    """A page of an index that was overwritten is named; a whole file has no problems."""
    store = SqliteStore(tmp_path / "state.db")
    for i in range(50):
        await _writes(store, f"name-{i}" * 20)
    assert store.integrity_problems() == []
    await store.aclose()
    data = bytearray(store.path.read_bytes())
    at = data.rindex(b"name-7name-7")
    data[at : at + 12] = b"\xff" * 12
    store.path.write_bytes(data)
    damaged = SqliteStore.__new__(SqliteStore)
    damaged.path = store.path
    assert damaged.integrity_problems() != []
