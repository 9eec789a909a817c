"""The store that a hub is given: ours, a place, or AG2's store in memory."""

from __future__ import annotations

import os
import time
from typing import Any, cast
from weakref import WeakKeyDictionary

from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.opening import open_store

_STORE_METHODS = ("write", "post", "read", "flush", "aclose")
_beside: WeakKeyDictionary[Any, MemoryStore] = WeakKeyDictionary()


def hub_store(given: Any, clock: Clock | None) -> tuple[Store, bool]:
    """The store for what `Hub.open` was given, and whether the hub is to close it.

    AG2's `MemoryKnowledgeStore` gets a memory store of ours for as long as it lives, so that a hub
    opened on it again finds what was there. `TypeError` for anything that is no store.
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
