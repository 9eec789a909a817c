"""Every store keeps every promise of the kit."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from tests.store.kit import CHECKS, Check, StoreFactory, run

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    """A factory of fresh stores of one kind."""
    if request.param == "memory":
        return lambda clock: MemoryStore(clock=clock)
    return lambda clock: SqliteStore(tmp_path / "state.db", clock=clock)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_keeps_the_promise(check: Check, make: StoreFactory) -> None:
    """The store passes the check."""
    await run(check, make)
