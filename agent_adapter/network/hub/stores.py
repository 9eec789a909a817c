"""Resolves what `Hub.open` was given to a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast
from weakref import WeakKeyDictionary

from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.opening import open_store

IsoClock = Callable[[], str]
"""A clock that gives ISO 8601 text, as AG2's hubs take it."""

_STORE_METHODS = ("write", "post", "read", "flush", "aclose")
_beside: WeakKeyDictionary[Any, MemoryStore] = WeakKeyDictionary()


def seconds_of(clock: Clock | IsoClock | None) -> Clock | None:
    """`clock` in seconds since the epoch."""
    if clock is None:
        return None

    def seconds() -> float:
        now = clock()
        return datetime.fromisoformat(now).timestamp() if isinstance(now, str) else now

    return seconds


def hub_store(given: Any, clock: Clock | None) -> tuple[Store, bool]:
    """The store for the argument of `Hub.open`, and whether the hub closes it.

    For AG2's `MemoryKnowledgeStore` it is a memory store of this library with the same lifetime, so
    that a second hub over it finds the same data. `TypeError` for anything that is not a store.
    """
    if given is None or isinstance(given, (str, os.PathLike)):
        return open_store(given, clock=clock or time.time), True
    if all(callable(getattr(given, name, None)) for name in _STORE_METHODS):
        return cast(Store, given), False
    kind = type(given)
    if any(
        item.__name__ == "MemoryKnowledgeStore" and item.__module__.split(".")[0] == "ag2"
        for item in kind.__mro__
    ):
        if given not in _beside:
            _beside[given] = MemoryStore(clock=clock or time.time)
        return _beside[given], False
    raise TypeError(
        f"Hub.open takes a store of this library, a path or a URL, not a {kind.__module__}."
        f"{kind.__qualname__}; pass open_store(url), as open_store('sqlite:///hub.db')"
    )
