"""Every store keeps every promise of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_adapter.store import MemoryStore
from agent_adapter.store.postgres import PostgresStore
from agent_adapter.store.sqlite import SqliteStore
from tests.postgres import database
from tests.store.kit import CHECKS, Check, StoreFactory, run

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFactory]:
    """A factory of fresh stores of one kind."""
    if request.param == "memory":
        yield lambda clock: MemoryStore(clock=clock)
    elif request.param == "sqlite":
        yield lambda clock: SqliteStore(tmp_path / "state.db", clock=clock)
    else:
        with database() as url:
            yield lambda clock: PostgresStore(url, clock=clock, key=bytes(32))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_keeps_the_promise(check: Check, make: StoreFactory) -> None:
    """The store passes the check."""
    await run(check, make)
