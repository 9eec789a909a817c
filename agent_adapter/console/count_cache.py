"""The counts in the navigation of every page, read at most once a second."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import asdict

from agent_adapter.store.base import Store
from agent_adapter.store.waiting import counts

_SECONDS = 1.0
_MOST = 1_000


class CountCache:
    """What waits for each person; an open page hears of changes by its stream."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str], tuple[float, dict[str, int]]] = OrderedDict()

    async def of(self, tenant: str, name: str) -> dict[str, int]:
        """`waiting`, `doubt` and `turns`."""
        at, known = self._known.get((tenant, name), (0.0, {}))
        if known and time.monotonic() - at < _SECONDS:
            return known
        found = asdict(await self._store.read(lambda tx: counts(tx, tenant, name)))
        self._known[tenant, name] = time.monotonic(), found
        self._known.move_to_end((tenant, name))
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found
