"""The store in one SQLite file. Importing this package loads SQLAlchemy and the driver."""

from __future__ import annotations

from agent_adapter.store.sqlite.store import SqliteStore, sqlite_path

__all__ = ["SqliteStore", "sqlite_path"]
