"""The stores that the console's tests run over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.store.sqlite import SqliteStore

NEEDED = ("starlette", "jinja2", "sse_starlette", "python_multipart")
collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_*.py"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A file, as the console has it."""
    made = SqliteStore(tmp_path / "state.db")
    yield made
    await made.aclose()


@pytest.fixture
def shop(store: SqliteStore) -> Any:
    """The shop and its console."""
    from tests.console._shop import ShopConsole

    return ShopConsole(store)
