"""The stores that the console's tests run over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("jinja2")
pytest.importorskip("sse_starlette")

from agent_adapter.store.sql.sqlite import SqliteStore  # after the packages
from tests.console._scene import Desk  # as above


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A file, as the console has it."""
    made = SqliteStore(tmp_path / "state.db")
    yield made
    await made.aclose()


@pytest.fixture
def desk(store: SqliteStore) -> Desk:
    """The shop and its console."""
    return Desk(store)
