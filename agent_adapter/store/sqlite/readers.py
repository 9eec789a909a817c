"""Reading a SQLite file."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Operation
from agent_adapter.store.sql.readers import Reader, StoreReaders
from agent_adapter.store.sqlite.connection import error_code

T = TypeVar("T")


class SqliteReaders(StoreReaders):
    """Readers of a SQLite file."""

    def _run(self, op: Operation[T]) -> T:
        try:
            reader = self._reader()
            with reader.gate:
                return self._snapshot(reader, op)
        except sqlite3.Error as error:
            if error_code(error) == sqlite3.SQLITE_READONLY:
                raise StoreError(
                    f"{self._name}: an operation of read() may not write; use write()"
                ) from error
            raise StoreError(
                f"cannot read {self._name}: {error}; see that the file is there and whole"
            ) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise StoreError(f"{self._name}: a value cannot be looked for: {error}") from error

    def _snapshot(self, reader: Reader, op: Operation[T]) -> T:
        reader.tx.now = self._clock()
        reader.tx.memo.clear()
        reader.connection.execute("BEGIN")
        try:
            return op(reader.tx)
        finally:
            if reader.connection.in_transaction:
                reader.connection.execute("ROLLBACK")
