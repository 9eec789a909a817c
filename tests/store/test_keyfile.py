"""The key of a SQLite store."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "state.db"


async def _made(path: Path, key: bytes | None = None) -> bytes:
    store = SqliteStore(path, key=key)
    await store.aclose()
    return store.key


async def test_the_key_lies_beside_the_file_for_its_owner_alone(path: Path) -> None:
    """32 bytes, mode 0600, the same at every opening."""
    key = await _made(path)
    kept = path.with_name("state.db.key")
    assert kept.read_bytes() == key and len(key) == 32
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert await _made(path) == key


async def test_a_given_key_is_written_nowhere(path: Path) -> None:
    """With key= there is no key file."""
    key = bytes(range(32))
    assert await _made(path, key) == key
    assert not path.with_name("state.db.key").exists()
    assert await _made(path, key) == key


async def test_a_missing_key_is_not_replaced(path: Path) -> None:
    """A store whose key file is gone is refused: a new key would deny its own ledger."""
    await _made(path)
    path.with_name("state.db.key").unlink()
    with pytest.raises(StoreError, match=r"state\.db\.key is missing.*put the file back"):
        SqliteStore(path)
    assert not path.with_name("state.db.key").exists()


async def test_another_key_is_refused(path: Path) -> None:
    """A key other than the one the store was made with is refused."""
    await _made(path)
    with pytest.raises(StoreError, match="made with another key"):
        SqliteStore(path, key=bytes(32))


async def test_a_key_of_another_length_is_refused(path: Path) -> None:
    """Given or on the disk, a key has 32 bytes."""
    with pytest.raises(StoreError, match="5 bytes in place of 32"):
        SqliteStore(path, key=b"short")
    assert not path.exists()
    path.with_name("state.db.key").write_bytes(b"cut")
    with pytest.raises(StoreError, match="3 bytes in place of 32"):
        SqliteStore(path)
