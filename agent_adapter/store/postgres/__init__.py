"""The store in a PostgreSQL database, for many machines."""

from __future__ import annotations

from agent_adapter.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
