"""The stores that the executor's tests run over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from tests.exec.shop import FakeClock
from tests.stores import fresh_store


@pytest.fixture
def clock() -> FakeClock:
    """A store's clock that stands still until it is told."""
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[Any]:
    """A fresh store of each kind, on the fake clock."""
    async with fresh_store(request.param, tmp_path, clock=clock) as made:
        yield made


@pytest.fixture
async def memory(clock: FakeClock) -> AsyncIterator[MemoryStore]:
    """A fresh memory store, where the kind of store does not matter."""
    made = MemoryStore(clock=clock)
    yield made
    await made.aclose()


@pytest.fixture
async def sqlite(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    """A fresh SQLite file, which other stores may open beside it."""
    made = SqliteStore(tmp_path / "state.db", clock=clock)
    yield made
    await made.aclose()
