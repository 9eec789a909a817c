"""Resolves what `Hub.open` was given to a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.opening import open_store

IsoClock = Callable[[], str]
"""A clock that gives ISO 8601 text, as AG2's hubs take it."""

HUB_FILE = "agent-adapter.db"
"""The file of a hub in the folder of AG2's `DiskKnowledgeStore`."""

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
    that a second hub over it finds the same data; for its `DiskKnowledgeStore` the file `HUB_FILE`
    in its folder. `TypeError` for anything that is not a store, `StoreError` for a folder with a
    hub of AG2 that was not imported.
    """
    if given is None or isinstance(given, (str, os.PathLike)):
        return open_store(given, clock=clock or time.time), True
    if all(callable(getattr(given, name, None)) for name in _STORE_METHODS):
        return cast(Store, given), False
    kind = type(given)
    ag2_s = {item.__name__ for item in kind.__mro__ if item.__module__.split(".")[0] == "ag2"}
    if "MemoryKnowledgeStore" in ag2_s:
        if given not in _beside:
            _beside[given] = MemoryStore(clock=clock or time.time)
        return _beside[given], False
    if "DiskKnowledgeStore" in ag2_s:
        return open_store(_file_in(given), clock=clock or time.time), True
    raise TypeError(
        f"Hub.open takes a store of this library, a path or a URL, not a {kind.__module__}."
        f"{kind.__qualname__}; pass open_store(url), as open_store('sqlite:///hub.db')"
    )


def _file_in(given: Any) -> Path:
    """Our file in the folder of a `DiskKnowledgeStore`."""
    # AG2 1.2 has no public name for the folder.
    root = getattr(given, "_root", None)
    if not isinstance(root, Path):
        raise TypeError(
            "the folder of this DiskKnowledgeStore cannot be read; pass Hub.open a path"
        )
    file = root / HUB_FILE
    if not file.exists() and any((root / name).is_dir() for name in ("agents", "channels")):
        raise StoreError(
            f"{root} holds a hub of AG2; take it over once with: "
            f"agent-adapter import-ag2 {root} --store {file}"
        )
    root.mkdir(parents=True, exist_ok=True)
    return file
