"""What many people look at, and what is costly to find out: kept for a few seconds."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """Values by key, each at most `seconds` old; the `most` latest are kept."""

    def __init__(self, seconds: float, most: int = 200) -> None:
        self._seconds = seconds
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    async def get(self, key: Hashable, find: Callable[[], Awaitable[V]]) -> V:
        """The value of that key, found anew where it is too old."""
        at, *known = self._kept.get(key, (0.0,))
        if known and time.monotonic() - at < self._seconds:
            return known[0]
        value = await find()
        self._kept[key] = time.monotonic(), value
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return value
