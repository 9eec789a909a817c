"""A place that is no store of ours is refused with the reason and left byte for byte as it was."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sqlite import SqliteStore, inspection

pytestmark = pytest.mark.anyio


def _refused(path: Path, reason: str) -> str:
    """Open, expect the refusal, and see that the file and its folder are as before."""
    before = {p: p.read_bytes() for p in path.parent.iterdir() if p.is_file()}
    with pytest.raises(StoreError, match=reason) as refusal:
        SqliteStore(path)
    assert {p: p.read_bytes() for p in path.parent.iterdir() if p.is_file()} == before
    assert str(path) in str(refusal.value)
    return str(refusal.value)


async def _made(path: Path) -> None:
    store = SqliteStore(path)
    await store.write(
        lambda tx: [tx.insert("runs", {"run_id": f"r{i:04}" * 20}) for i in range(400)]
    )
    await store.aclose()


@pytest.mark.parametrize(
    "content", [b"hello", b"x" * 99, b"# notes\n" * 1000, b"SQLite format 3\x00"], ids=len
)
def test_a_file_that_is_not_sqlite(tmp_path: Path, content: bytes) -> None:
    """Any other file is refused."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert "give the path of a store" in _refused(path, "is not a SQLite file")


async def test_a_database_of_another_program(tmp_path: Path) -> None:
    """A SQLite file with tables and without our mark is refused."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert "choose another path" in _refused(path, "database of another program")


async def test_a_damaged_store(tmp_path: Path) -> None:
    """A store whose pages are overwritten is refused."""
    path = tmp_path / "state.db"
    await _made(path)
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 12] = os.urandom(4096 * 9)
    path.write_bytes(content)
    assert "restore it from a backup" in _refused(path, "is damaged")


async def test_a_store_that_was_cut_off(tmp_path: Path) -> None:
    """A store that lacks its end is refused."""
    path = tmp_path / "state.db"
    await _made(path)
    path.write_bytes(path.read_bytes()[:-6000])
    _refused(path, "is damaged")


async def test_a_newer_schema(tmp_path: Path) -> None:
    """A store of a newer version is refused with the advice to upgrade."""
    path = tmp_path / "state.db"
    await _made(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert "upgrade agent-adapter" in _refused(path, "newer version of this library")


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    """A folder is refused."""
    (tmp_path / "state.db").mkdir()
    _refused(tmp_path / "state.db", "is a folder")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    """A path in a folder that is not there is refused, and the folder is not made."""
    with pytest.raises(StoreError, match="does not exist; create it first"):
        SqliteStore(tmp_path / "nowhere" / "state.db")
    assert not (tmp_path / "nowhere").exists()


def test_a_pipe(tmp_path: Path) -> None:
    """A pipe is refused, without waiting for its other end."""
    os.mkfifo(tmp_path / "state.db")
    with pytest.raises(StoreError, match="a device or a pipe"):
        SqliteStore(tmp_path / "state.db")


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_what_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A file or a folder without the permission to write is refused."""
    path = tmp_path / "state.db"
    await _made(path)
    closed = path if what == "file" else tmp_path
    access = os.access
    # Root may write everything, whatever the mode, so the system's answer is given here.
    monkeypatch.setattr(
        inspection.os, "access", lambda p, mode: Path(p) != closed and access(p, mode)
    )
    with pytest.raises(StoreError, match="permission denied or read-only") as refusal:
        SqliteStore(path)
    assert str(closed) in str(refusal.value)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_a_network_file_system(tmp_path: Path, kind: str) -> None:
    """A file system whose locks cannot be trusted is refused; the nearest mount counts."""
    mounts = tmp_path / "mounts"
    shared = tmp_path / "a b"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nhost:/x {str(shared).replace(' ', chr(92) + '040')} {kind} rw 0 0\n"
    )
    with pytest.raises(StoreError, match=f"network file system \\({kind}\\)"):
        inspection.refuse_network_file_system(shared / "state.db", mounts)
    inspection.refuse_network_file_system(tmp_path / "state.db", mounts)


@pytest.mark.parametrize(
    "written", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "", "sqlite:///a.db?mode=ro"]
)
def test_a_url_that_names_no_file(written: str) -> None:
    """A URL without a path, or with options, is refused."""
    with pytest.raises(StoreError, match=r"names no file|are not known"):
        SqliteStore(written)
