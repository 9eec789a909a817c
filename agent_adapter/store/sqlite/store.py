"""A store in one SQLite file."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store import ledger
from agent_adapter.store.base import Operation
from agent_adapter.store.forking import Lock, release_all, take_all, watch_forks
from agent_adapter.store.sql.keyfile import (
    checked_key,
    file_key,
    is_marked,
    mark_key,
    refuse_other_key,
)
from agent_adapter.store.sql.revisions import HEAD, names_rows
from agent_adapter.store.sql.transaction import SqlTransaction
from agent_adapter.store.sqlite.connection import (
    read_only_connection,
    sqlite_statements,
    writing_connection,
)
from agent_adapter.store.sqlite.file import DatabaseFile
from agent_adapter.store.sqlite.inspection import inspect
from agent_adapter.store.sqlite.owners import Owner, opening_lock
from agent_adapter.store.sqlite.readers import SqliteReaders
from agent_adapter.store.sqlite.space import give_back
from agent_adapter.store.sqlite.writer import SqliteWriter, begin_immediate
from agent_adapter.store.uptime import Uptime

T = TypeVar("T")


class SqliteStore:
    """A store in a SQLite file of a local disk, shared by every process that opens it.

    Opening makes the file, its key (`<file>.key`) and a folder in which live processes hold locks
    (`<file>.epochs`), or brings an older file to the newest schema. A file that is no store of
    ours, damaged or newer than this library is refused with `StoreError` and left as it was.
    """

    durable = True

    def __init__(
        self,
        path_or_url: str | os.PathLike[str],
        *,
        clock: Clock = time.time,
        key: bytes | None = None,
    ) -> None:
        self.path = sqlite_path(path_or_url)
        self.url = f"sqlite:///{self.path}"
        self._clock = clock
        self._uptime = Uptime.beside(clock)
        self.schema_found: str | None = None
        """The revision of the file's schema before it was opened; `None` where there was none."""
        self.key_path = self.path.with_name(f"{self.path.name}.key")
        # The name is that of version 0.1, whose processes look for locks there.
        self._owners = self.path.with_name(f"{self.path.name}.epochs")
        self._statements = sqlite_statements()
        if key is not None:
            checked_key(key, self.url)
        inspect(self.path)
        with opening_lock(self._owners):
            self.key = self._prepare(key)
            self._file = DatabaseFile(self.path)
        self._beginning = threading.Lock()
        self._held: list[Lock] = []
        self._begin()
        watch_forks(self)

    @staticmethod
    def exists(path_or_url: str | os.PathLike[str]) -> bool:
        """Whether anything lies at the place; an empty file is nothing. Creates nothing."""
        path = sqlite_path(path_or_url)
        try:
            found = path.stat()
        except OSError as error:
            # What may not be looked at is told by the attempt to open it.
            return not isinstance(error, (FileNotFoundError, NotADirectoryError))
        return not stat.S_ISREG(found.st_mode) or found.st_size > 0

    @property
    def owner_id(self) -> str:
        """Identifies this process as the owner of rows: new at every start and after a fork."""
        return self._current().id

    def write(self, op: Operation[T]) -> Coroutine[Any, Any, T]:
        """Run `op` in the writer's next transaction; its value comes once that is on the disk."""
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

    def integrity_problems(self) -> list[str]:
        """What SQLite's own check of pages, indexes and constraints finds; reads the whole file."""
        with contextlib.closing(read_only_connection(self.path)) as connection:
            try:
                found = connection.execute("PRAGMA integrity_check(20)").fetchall()
            except sqlite3.DatabaseError as error:
                return [str(error)]
        return [str(row[0]) for row in found if row[0] != "ok"]

    def give_back(self, pages: int) -> int:
        """Give up to so many free pages of the file back to the disk; how many bytes.

        0 where none is left, another process writes just now, or a file of an older version was
        not compacted yet (`agent-adapter db upgrade`).
        """
        return give_back(self.path, pages)

    async def flush(self) -> None:
        """Return when everything posted so far is on the disk."""
        await self.write(_nothing)

    async def aclose(self) -> None:
        """Write what is queued, then close files and threads; a second call does nothing."""
        if self._finish.alive:
            await asyncio.to_thread(self._finish)

    def _current(self) -> Owner:
        # A forked child has none until it uses the store.
        owner = self._owner
        if owner is None:
            with self._beginning:
                owner = self._owner or self._begin()
        return owner

    def _prepare(self, key: bytes | None) -> bytes:
        """Bring the file to the newest schema; the only process doing so. The key to use."""
        found = self.schema_found = inspect(self.path)
        if key is None:
            key = file_key(self.key_path, may_create=found is None)
        with _mapped(self.path):
            connection = writing_connection(self.path, create=True)
            with contextlib.closing(connection):
                if found != HEAD:
                    from agent_adapter.store.sqlite.migrate import migrate

                    # In chains of this version no entry names rows: record them as they are.
                    unseen = found is not None and not names_rows(found)
                    migrate(connection, partial(self._vouch, key) if unseen else None)
                self._check(connection, key)
        return key

    def _vouch(self, key: bytes, connection: sqlite3.Connection) -> None:
        """Write a baseline for each chain, in the transaction of the migration."""
        tx = self._bare_transaction(connection, key)
        tx.now = self._clock()
        for chain in ledger.unvouched(tx):
            ledger.run(partial(ledger.baseline, chain=chain), tx)

    def _bare_transaction(self, connection: sqlite3.Connection, key: bytes) -> SqlTransaction:
        return SqlTransaction(
            connection.cursor(),
            self._statements,
            key=key,
            owner_id="",
            is_live=lambda *_: False,
            uptime=self._uptime,
        )

    def _check(self, connection: sqlite3.Connection, key: bytes) -> None:
        tx = self._bare_transaction(connection, key)
        if not is_marked(tx):
            begin_immediate(connection)
            mark_key(tx)
            connection.execute("COMMIT")
        refuse_other_key(tx, str(self.path))

    def _begin(self) -> Owner:
        owner = Owner(self._owners)
        name = str(self.path)
        transaction = partial(
            SqlTransaction,
            statements=self._statements,
            key=self.key,
            owner_id=owner.id,
            is_live=owner.is_live,
            uptime=self._uptime,
        )
        self._writer = SqliteWriter(
            name=name,
            connect=partial(writing_connection, self.path),
            transaction=transaction,
            owner=owner,
            clock=self._clock,
            file=self._file,
        )
        self._readers = SqliteReaders(
            name=name,
            connect=partial(read_only_connection, self.path),
            transaction=lambda connection: transaction(connection.cursor()),
            clock=self._clock,
        )
        self._finish = weakref.finalize(self, _finish, self._writer, self._readers, owner)
        self._owner: Owner | None = owner
        return owner

    def before_fork(self) -> None:
        """Wait for the transaction under way, so that the child never starts inside SQLite."""
        self._held = take_all([self._writer.gate, *self._readers.gates()])

    def after_fork_in_parent(self) -> None:
        """Release the locks."""
        release_all(self._held)

    def after_fork_in_child(self) -> None:
        """Leave the parent's threads, files and owner alone; the first use creates new ones."""
        closed = not self._finish.alive
        self._beginning = threading.Lock()
        self._held = []
        self._finish.detach()
        for thing in (*self._writer.abandoned(), *self._readers.abandoned()):
            # Never freed: closing a connection of the parent would break its locks.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
        if self._owner is not None and not closed:
            self._owner.disown()
            self._owner = None


def _finish(writer: SqliteWriter, readers: SqliteReaders, owner: Owner) -> None:
    # The writer last: its connection empties the log, which one that only reads cannot.
    readers.close()
    writer.stop()
    owner.release()


def _nothing(tx: object) -> None:
    """An operation that only waits for the jobs before it."""


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"cannot open {path}: {error}; see that its folder may be written, the disk has room"
            " and no other program holds the file"
        ) from error


def sqlite_path(path_or_url: str | os.PathLike[str]) -> Path:
    """The absolute path of a plain path, `sqlite:///relative.db` or `sqlite:////absolute.db`."""
    written = os.fspath(path_or_url)
    if not written.startswith("sqlite:"):
        name = written
    else:
        name = written.removeprefix("sqlite:///") if written.startswith("sqlite:///") else ""
        if "?" in name:
            raise StoreError(f"{written}: options after '?' are not known; give the path alone")
    if name in ("", ":memory:"):
        raise StoreError(
            f"{written or 'an empty path'} names no file; write sqlite:///path/to/state.db,"
            " or memory:// for a store that keeps nothing"
        )
    # Links are resolved: the files next to the database must have one name, as SQLite's own do.
    return Path(os.path.realpath(os.path.expanduser(name)))
