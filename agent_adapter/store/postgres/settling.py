"""Which events are all there, where transactions that write them run beside each other.

An event has its position before its transaction is committed, so a later one may be seen earlier.
Such a transaction holds a lock that says when it began; its positions are later than that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from agent_adapter.store.base import Operation

_AGAIN_SECONDS = 0.003
_MOST_SECONDS = 0.5
"""A transaction of a stopped process is not waited for: events behind it are left out."""


async def settled(read: Callable[[Operation[Any]], Awaitable[Any]]) -> int:
    """The position before which every event is there, for whoever looks after it."""
    position, waited = await read(_marks)
    until = time.monotonic() + _MOST_SECONDS
    while waited:
        await asyncio.sleep(_AGAIN_SECONDS)
        still = set((await read(_marks))[1])
        waited = [mark for mark in waited if mark in still]
        if waited and time.monotonic() > until:
            return int(min(waited))
    return int(position)


def _marks(tx: Any) -> tuple[int, list[int]]:
    found: tuple[int, list[int]] = tx.marks()
    return found
