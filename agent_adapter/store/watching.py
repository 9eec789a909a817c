"""Waiting for what other processes do: by messages where a store has them, else by looking."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Protocol, runtime_checkable

from agent_adapter.store.base import Store

LONGEST_SECONDS = 5.0
"""A message can be lost with the process that sends it: whoever waits looks again after this."""


@runtime_checkable
class Telling(Protocol):
    """A store that tells when any process has changed a table."""

    @property
    def change(self) -> int:
        """The latest change that was told."""
        ...

    async def changed(
        self, tables: Collection[str], seconds: float, since: int | None = None
    ) -> bool:
        """Return when one of the tables has changed since then; `False` after the seconds."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A store in which a transaction may be seen before another with earlier events."""

    async def settled(self) -> int | None:
        """The position before which every event is there; `None` where that is not known."""
        ...


class ChangeWatch:
    """Waits between two looks at a store: make it before the first look."""

    def __init__(self, store: Store, tables: Collection[str]) -> None:
        self._store = store if isinstance(store, Telling) else None
        self._tables = tables
        self._since = 0 if self._store is None else self._store.change

    async def wait(self, pause: float, left: float) -> None:
        """Return when it may be worth looking again: after `pause`, or when a table changes."""
        if self._store is None:
            await asyncio.sleep(min(pause, left))
            return
        await self._store.changed(self._tables, min(left, LONGEST_SECONDS), self._since)
        self._since = self._store.change
