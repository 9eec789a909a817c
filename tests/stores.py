"""A fresh store of each kind, for suites that run over all of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agent_adapter.core.ports import Clock
from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from tests.postgres import database

KEY = bytes(range(32))
"""The key of the stores whose database outlives no test."""


@contextlib.asynccontextmanager
async def fresh_store(kind: str, folder: Path, *, clock: Clock) -> AsyncIterator[Any]:
    """A store of that kind, empty, closed at the end."""
    with contextlib.ExitStack() as stack:
        made: Any
        if kind == "memory":
            made = MemoryStore(clock=clock)
        elif kind == "sqlite":
            made = SqliteStore(folder / "state.db", clock=clock)
        else:
            from agent_adapter.store.postgres import PostgresStore

            made = PostgresStore(stack.enter_context(database()), clock=clock, key=KEY)
        try:
            yield made
        finally:
            await made.aclose()
