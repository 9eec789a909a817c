"""Counts what a store does: statements, and the rows or steps of the database that they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.sqlite import SqliteStore


class Counter:
    """Counts inside `with`: `statements`, and `steps`, which are rows looked at or SQLite's own.

    SQLite's steps are those of its virtual machine: a query that reads more rows takes more.
    """

    def __init__(self, store: Store) -> None:
        self.statements = self.steps = 0
        self._store = store

    def reset(self) -> None:
        """Begin at 0."""
        self.statements = self.steps = 0

    def __enter__(self) -> Counter:
        """Count from here."""
        if isinstance(self._store, MemoryStore):
            for table in self._store._tables.values():
                table.rows = _CountedRows(table.rows, self)
        else:
            self._connect = self._store._readers._connect  # type: ignore[attr-defined]  # SQLite's
            self._store._readers._connect = self._watched  # type: ignore[attr-defined]  # SQLite's
            for connection in self._connections():
                self._watch(connection)
        return self

    def __exit__(self, *_: object) -> None:
        """Until here."""
        if isinstance(self._store, MemoryStore):
            for table in self._store._tables.values():
                table.rows = dict(table.rows)
        else:
            self._store._readers._connect = self._connect  # type: ignore[attr-defined]  # SQLite's
            for connection in self._connections():
                connection.set_trace_callback(None)
                connection.set_progress_handler(None, 0)

    def _connections(self) -> Iterator[Any]:
        assert isinstance(self._store, SqliteStore)
        yield self._store._writer._connection
        yield from (reader.connection for reader in self._store._readers._opened)

    def _watched(self) -> Any:
        """A connection that a reader opens meanwhile."""
        connection = self._connect()
        self._watch(connection)
        return connection

    def _watch(self, connection: Any) -> None:
        connection.set_trace_callback(self._statement)
        connection.set_progress_handler(self._step, 1)

    def _statement(self, text: str) -> None:
        self.statements += 1

    def _step(self) -> int:
        self.steps += 1
        return 0


class _CountedRows(dict[Any, Any]):
    def __init__(self, rows: dict[Any, Any], counter: Counter) -> None:
        super().__init__(rows)
        self._counter = counter

    def __getitem__(self, key: Any) -> Any:
        self._counter.steps += 1
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._counter.steps += 1
        return super().get(key, default)

    def items(self) -> Any:
        self._counter.steps += len(self)
        return super().items()
