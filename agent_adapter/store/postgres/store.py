"""A store in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
import time
import weakref
from collections.abc import Collection, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

import psycopg

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Operation
from agent_adapter.store.forking import Lock, release_all, take_all, watch_forks
from agent_adapter.store.postgres.buffer import BufferedTransaction
from agent_adapter.store.postgres.clock import ServerClock
from agent_adapter.store.postgres.connection import (
    Connection,
    PostgresCursor,
    connect,
    parameters_of,
    postgres_statements,
    said,
    shown,
    writing_connection,
)
from agent_adapter.store.postgres.inspection import (
    FoundDatabase,
    inspect,
    refuse_transaction_pooling,
)
from agent_adapter.store.postgres.keys import default_key_path
from agent_adapter.store.postgres.locks import lock_id
from agent_adapter.store.postgres.migrate import migrate
from agent_adapter.store.postgres.owners import PostgresOwner
from agent_adapter.store.postgres.readers import PostgresReaders
from agent_adapter.store.postgres.session import ProcessSession
from agent_adapter.store.postgres.settling import settled
from agent_adapter.store.postgres.writer import PostgresWriter
from agent_adapter.store.sql.keyfile import (
    checked_key,
    file_key,
    is_marked,
    mark_key,
    refuse_other_key,
)
from agent_adapter.store.sql.revisions import HEAD
from agent_adapter.store.uptime import Uptime

T = TypeVar("T")


class PostgresStore:
    """A store in a schema of a PostgreSQL database, shared by every process that opens it.

    Opening makes the tables, or brings older ones to the newest schema. The key is that of `key`,
    or of the file that `AGENT_ADAPTER_KEY_FILE` names, or of one in the home directory; every
    machine needs the same. A database that belongs to another program, is newer than this library
    or stands behind a pooler in transaction mode is refused with `StoreError`.
    """

    durable = True

    def __init__(self, url: str, *, clock: Clock = time.time, key: bytes | None = None) -> None:
        self.url = shown(url)
        self._parameters = parameters_of(url)
        self._clock = ServerClock(clock)
        self._uptime = Uptime.beside(clock)
        self._statements = postgres_statements()
        self.schema_found: str | None = None
        """The revision of the tables before they were opened; `None` where there were none."""
        if key is not None:
            checked_key(key, self.url)
        self._beginning = threading.Lock()
        self._held: list[Lock] = []
        with self._mapped(), contextlib.closing(connect(self._parameters)) as connection:
            found = self._prepare(connection)
            self.key = self._key(connection, found, key)
            self._found = found
            self._begin(connection)
        watch_forks(self)

    @staticmethod
    def exists(url: str) -> bool:
        """Whether the database has our tables; makes none."""
        try:
            with contextlib.closing(connect(parameters_of(url))) as connection:
                return inspect(connection, shown(url)).revision is not None
        except psycopg.Error:
            return True  # the attempt to open it says what is wrong

    @property
    def owner_id(self) -> str:
        """Identifies this process as the owner of rows: new at every start and after a fork."""
        return self._current().id

    def write(self, op: Operation[T]) -> Coroutine[Any, Any, T]:
        """Run `op` in the writer's next transaction; its value comes once that is durable."""
        self._current()
        return self._writer.write(op)

    def post(self, op: Operation[Any]) -> None:
        """Queue `op` for the writer without waiting; it has the time of now."""
        self._current()
        self._writer.post(op)

    def read(self, op: Operation[T]) -> Coroutine[Any, Any, T]:
        """Run `op` over a snapshot, beside the writer."""
        self._current()
        return self._readers.read(op)

    @property
    def change(self) -> int:
        """The latest change that was told to this process; `changed` waits for a later one."""
        self._current()
        return self._session.change

    async def changed(
        self, tables: Collection[str], seconds: float, since: int | None = None
    ) -> bool:
        """Return when a process changes one of the tables; `False` after so many seconds.

        With `since`, an earlier value of `change`, also if that has happened meanwhile.
        """
        self._current()
        session = self._session
        return await session.changed(tables, seconds, session.change if since is None else since)

    async def settled(self) -> int | None:
        """The position before which no event will come that is not there yet.

        Waits for the transactions that may write one: a moment, and not for one that stands still.
        `None` with a clock of the program's own, since positions follow it.
        """
        self._current()
        return None if self._clock.is_own else await settled(self._readers.read)

    async def flush(self) -> None:
        """Return when everything posted so far is durable."""
        await self.write(_nothing)

    async def aclose(self) -> None:
        """Write what is queued, then end connections and threads; a second call does nothing."""
        if self._finish.alive:
            await asyncio.to_thread(self._finish)

    def _current(self) -> PostgresOwner:
        # A forked child has none until it uses the store.
        owner = self._owner
        if owner is None:
            with self._beginning, self._mapped():
                owner = self._owner or self._begin(None)
        return owner

    def _prepare(self, connection: Connection) -> FoundDatabase:
        found = inspect(connection, self.url)
        self.schema_found = found.revision
        if found.revision != HEAD:
            migrate(connection, self.url)
        return found

    def _key(self, connection: Connection, found: FoundDatabase, key: bytes | None) -> bytes:
        """The key to use; a new store is marked with it, one made with another is refused."""
        tx = self._transaction(PostgresCursor(connection), key=key or b"", owner_id="")
        self.key_path = default_key_path(self._parameters, found.schema)
        if key is None:
            key = file_key(self.key_path, may_create=not is_marked(tx))
        tx.key = key
        if not is_marked(tx):
            mark_key(tx)
        refuse_other_key(tx, self.url)
        return key

    def _transaction(
        self,
        cursor: PostgresCursor,
        *,
        key: bytes,
        owner_id: str,
        owner: PostgresOwner | None = None,
    ) -> BufferedTransaction:
        return BufferedTransaction(
            cursor,
            self._statements,
            key=key,
            owner_id=owner_id,
            is_live=(lambda *_: False) if owner is None else partial(owner.is_live, cursor),
            uptime=self._uptime,
        )

    def _begin(self, opened: Connection | None) -> PostgresOwner:
        owner = PostgresOwner()
        found = self._found
        first = connect(self._parameters)
        try:
            if opened is not None:
                refuse_transaction_pooling(opened, first, self.url)
            self._session = ProcessSession(
                name=self.url,
                connect=partial(connect, self._parameters),
                channel=f"agent_adapter_{lock_id('channel', found.schema) & (2**64 - 1):x}",
                owner=owner if found.writable else None,
                first=first,
            )
        except BaseException:
            first.close()
            raise
        transaction = partial(self._transaction, key=self.key, owner_id=owner.id, owner=owner)
        self._writer = PostgresWriter(
            name=self.url,
            connect=partial(writing_connection, self._parameters),
            transaction=transaction,
            clock=self._clock,
            tell=self._session.tell,
        )
        self._readers = PostgresReaders(
            name=self.url,
            connect=partial(connect, self._parameters),
            transaction=lambda connection: transaction(PostgresCursor(connection)),
            clock=self._clock,
        )
        self._finish = weakref.finalize(self, _finish, self._writer, self._readers, self._session)
        self._owner: PostgresOwner | None = owner
        return owner

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StoreError(
                f"cannot open {self.url}: {said(error)}; see that the server runs and the role may"
                " connect, and make tables in its schema"
            ) from error

    def before_fork(self) -> None:
        """Wait for the transaction under way, so that the child never starts inside one."""
        gates = [*self._session.gates(), self._writer.gate, *self._readers.gates()]
        self._held = take_all(gates)

    def after_fork_in_parent(self) -> None:
        """Release the locks."""
        release_all(self._held)

    def after_fork_in_child(self) -> None:
        """Leave the parent's threads and connections alone; the first use creates new ones."""
        closed = not self._finish.alive
        self._beginning = threading.Lock()
        self._held = []
        self._finish.detach()
        kept = (
            *self._writer.abandoned(),
            *self._readers.abandoned(),
            *self._session.abandoned(),
        )
        for thing in kept:
            # Never freed: closing a connection of the parent would end it for both.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
        if not closed:
            self._owner = None


def _finish(writer: PostgresWriter, readers: PostgresReaders, session: ProcessSession) -> None:
    readers.close()
    writer.stop()
    session.stop()


def _nothing(tx: object) -> None:
    """An operation that only waits for the jobs before it."""


_nothing.keys = frozenset  # type: ignore[attr-defined]  # it touches nothing
