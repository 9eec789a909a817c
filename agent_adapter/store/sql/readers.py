"""Reading: a few threads, each with a connection that cannot write; none waits for the writer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Operation
from agent_adapter.store.forking import Lock
from agent_adapter.store.sql.transaction import SqlTransaction

T = TypeVar("T")

_THREADS = 4


class Reader:
    """One connection and its tables; `gate` is held while it reads."""

    def __init__(self, connection: Any, tx: SqlTransaction) -> None:
        self.connection = connection
        self.tx = tx
        self.gate = threading.RLock()


class StoreReaders:
    """Runs operations over a snapshot each, up to four at a time.

    A database has a subclass that reads: `_run`. `connect` opens a connection, in the thread that
    uses it; `transaction` wraps it.
    """

    def __init__(
        self,
        *,
        name: str,
        connect: Callable[[], Any],
        transaction: Callable[[Any], SqlTransaction],
        clock: Clock,
    ) -> None:
        self._name = name
        self._connect = connect
        self._transaction = transaction
        self._clock = clock
        self._local = threading.local()
        self._opened: set[Reader] = set()
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

    def _reader(self) -> Reader:
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._opening:
                connection = self._connect()
                reader = Reader(connection, self._transaction(connection))
                self._opened.add(reader)
            self._local.reader = reader
        return reader

    def _run(self, op: Operation[T]) -> T:
        """Run the operation over a snapshot, in this thread."""
        raise NotImplementedError
