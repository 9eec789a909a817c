"""Reading a PostgreSQL database."""

from __future__ import annotations

import contextlib
from typing import TypeVar

import psycopg
from psycopg import errors

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Operation
from agent_adapter.store.postgres.connection import is_later, said
from agent_adapter.store.sql.readers import Reader, StoreReaders

T = TypeVar("T")

_TRIES = 3


class PostgresReaders(StoreReaders):
    """Readers of a PostgreSQL database."""

    def _drop(self) -> None:
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is not None:
            self._local.reader = None
            self._opened.discard(reader)
            with contextlib.suppress(psycopg.Error):
                reader.connection.close()

    def _run(self, op: Operation[T]) -> T:
        try:
            for _ in range(_TRIES - 1):
                try:
                    return self._once(op)
                except psycopg.Error as error:
                    if not is_later(error):
                        raise
                    # A connection that was lost says so when it is next used.
                    self._drop()
            return self._once(op)
        except psycopg.Error as error:
            if is_later(error):
                self._drop()
            if isinstance(error, errors.ReadOnlySqlTransaction):
                raise StoreError(
                    f"{self._name}: an operation of read() may not write; use write()"
                ) from error
            raise StoreError(
                f"cannot read {self._name}: {said(error)}; see that the server runs and the role"
                " may read the tables"
            ) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise StoreError(f"{self._name}: a value cannot be looked for: {error}") from error

    def _once(self, op: Operation[T]) -> T:
        reader = self._reader()
        with reader.gate:
            return self._snapshot(reader, op)

    def _snapshot(self, reader: Reader, op: Operation[T]) -> T:
        reader.tx.now = self._clock()
        reader.tx.memo.clear()
        reader.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        try:
            return op(reader.tx)
        finally:
            if not reader.connection.closed:
                with contextlib.suppress(psycopg.Error):
                    reader.connection.execute("ROLLBACK")
