"""Reading: a few threads, each with a connection that cannot write; none waits for the writer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Operation
from agent_adapter.store.forking import Lock
from agent_adapter.store.sql.transaction import SqlTransaction
from agent_adapter.store.sqlite.connection import error_code

T = TypeVar("T")

_THREADS = 4


class _Reader:
    """One connection and its tables; `gate` is held while it reads."""

    def __init__(self, connection: sqlite3.Connection, tx: SqlTransaction) -> None:
        self.connection = connection
        self.tx = tx
        self.gate = threading.RLock()


class Readers:
    """Runs operations over a snapshot each, up to four at a time."""

    def __init__(
        self,
        *,
        name: str,
        connect: Callable[[], sqlite3.Connection],
        transaction: Callable[[sqlite3.Cursor], SqlTransaction],
        clock: Clock,
    ) -> None:
        self._name = name
        self._connect = connect
        self._transaction = transaction
        self._clock = clock
        self._local = threading.local()
        self._opened: list[_Reader] = []
        self._opening = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    async def read(self, op: Operation[T]) -> T:
        """Run `op` in a thread of the pool."""
        with self._opening:
            if self._closed:
                raise StoreError(f"{self._name}: this store is closed; open it again")
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, "agent-adapter-reader")
            pool = self._pool
        return await asyncio.get_running_loop().run_in_executor(pool, self._run, op)

    def close(self) -> None:
        """End the threads and close their connections, after what they are reading.

        From one of the threads itself, where the last reference may be dropped, nothing is waited
        for and the connections close when they are no longer used.
        """
        with self._opening:
            self._closed = True
            pool = self._pool
        inside = getattr(self._local, "reader", None) is not None
        if pool is not None:
            pool.shutdown(wait=not inside)
        if inside:
            return
        for reader in self._opened:
            reader.connection.close()
        self._opened.clear()

    def gates(self) -> Iterator[Lock]:
        """Locks that are held while anybody opens a connection or reads."""
        yield self._opening
        for reader in list(self._opened):
            yield reader.gate

    def abandoned(self) -> list[object]:
        """What a forked child must keep and never touch."""
        return [self._pool, self._local, *self._opened]

    def _reader(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._opening:
                connection = self._connect()
                reader = _Reader(connection, self._transaction(connection.cursor()))
                self._opened.append(reader)
            self._local.reader = reader
        return reader

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

    def _snapshot(self, reader: _Reader, op: Operation[T]) -> T:
        reader.tx.now = self._clock()
        reader.tx.memo.clear()
        reader.connection.execute("BEGIN")
        try:
            return op(reader.tx)
        finally:
            if reader.connection.in_transaction:
                reader.connection.execute("ROLLBACK")
