"""The failing store fails where it was told to."""

from __future__ import annotations

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store import MemoryStore
from tests.fakes.store import FaultyStore

pytestmark = pytest.mark.anyio


async def _scenario(store: FaultyStore) -> None:
    for name in "abcd":
        await store.write(lambda tx, name=name: tx.insert("meta", {"name": name}))


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("fail_at", [1, 2, 3, 4])
async def test_it_fails_at_the_chosen_write(fail_at: int, applied: bool) -> None:
    """Before or after applying the n-th write, and nowhere else."""
    store = FaultyStore(MemoryStore(), fail_at=fail_at, applied=applied)
    with pytest.raises(StoreError, match=f"at write or post {fail_at}"):
        await _scenario(store)
    assert await store.read(lambda tx: tx.count("meta")) == fail_at - (not applied)
    assert await store.write(lambda tx: tx.insert("meta", {"name": "later"})) is True


async def test_a_lasting_fault_lasts() -> None:
    """Posts count, too, and a lasting fault fails everything that comes later."""
    store = FaultyStore(MemoryStore(), fail_at=2, lasting=True)
    store.post(lambda tx: None)
    for _ in range(2):
        with pytest.raises(StoreError):
            store.post(lambda tx: None)
