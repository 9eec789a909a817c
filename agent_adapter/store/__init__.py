"""Stores, and the operations on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.store.base import Condition, Operation, Row, Store, Transaction
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.opening import open_store
from agent_adapter.store.retention import Retention

if TYPE_CHECKING:
    from agent_adapter.store.sqlite import SqliteStore

__all__ = [
    "Condition",
    "MemoryStore",
    "Operation",
    "Retention",
    "Row",
    "SqliteStore",
    "Store",
    "Transaction",
    "open_store",
]


def __getattr__(name: str) -> Any:
    if name == "SqliteStore":
        # SQLAlchemy is imported when a database is opened, not before.
        from agent_adapter.store.sqlite import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
