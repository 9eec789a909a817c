"""The counts in the navigation of every page, read at most once a second."""

from __future__ import annotations

from dataclasses import asdict

from agent_adapter.console.recent import Recent
from agent_adapter.store.base import Store
from agent_adapter.store.waiting import counts

_SECONDS = 1.0


class CountCache:
    """What waits for each person; an open page hears of changes by its stream."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recent: Recent[dict[str, int]] = Recent(_SECONDS)

    async def of(self, tenant: str, name: str) -> dict[str, int]:
        """`waiting`, `doubt` and `turns`."""

        async def find() -> dict[str, int]:
            return asdict(await self._store.read(lambda tx: counts(tx, tenant, name)))

        return await self._recent.get((tenant, name), find)
