"""Transactions of the one writer of a SQLite file."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Sequence

from agent_adapter.core.ports import Clock
from agent_adapter.store import ledger
from agent_adapter.store.sql import writer
from agent_adapter.store.sql.jobs import Job, OperationFailed, OtherwiseAgain
from agent_adapter.store.sql.transaction import SqlTransaction
from agent_adapter.store.sqlite.connection import is_busy, is_storage_trouble, is_unstorable, mapped
from agent_adapter.store.sqlite.file import DatabaseFile, FileMoved
from agent_adapter.store.sqlite.owners import Owner

BUSY_SECONDS = 30.0
"""The seconds that a transaction waits for that of another process."""

_MEMO_LIMIT = 10_000

_log = logging.getLogger("agent_adapter.store")


class SqliteWriter(writer.StoreWriter):
    """The writer thread of a SQLite file.

    `connect` opens the connection, in the thread; `transaction` wraps its cursor.
    """

    advice = "see that the disk has room, the file is there and no other program holds it"

    def __init__(
        self,
        *,
        name: str,
        connect: Callable[[], sqlite3.Connection],
        transaction: Callable[[sqlite3.Cursor], SqlTransaction],
        owner: Owner,
        clock: Clock,
        file: DatabaseFile,
    ) -> None:
        super().__init__(name=name, clock=clock, beat=owner.beat, beats_when_idle=owner.needs_beats)
        self._file = file
        self._connect = connect
        self._transaction = transaction
        self._connection: sqlite3.Connection | None = None
        self._tx: SqlTransaction | None = None
        self._version = -1

    def abandoned(self) -> list[object]:
        """The objects that a forked child must keep and never use."""
        return [self._connection, self._tx, *super().abandoned()]

    def _trouble(self, error: BaseException) -> writer.Trouble:
        if isinstance(error, FileMoved):
            return "refused"
        return "later" if isinstance(error, sqlite3.Error) else "fatal"

    def _transact(self, jobs: Sequence[Job]) -> None:
        """One transaction; `OperationFailed`, rolled back, when a job raised after writing.

        It succeeds only if the path still names the file that was opened: otherwise two processes
        could write two files of the same name.
        """
        self._check_file()
        tx = self._ready()
        connection = self._connection
        assert connection is not None  # noqa: S101 - `_ready` made it
        self._waited = begin_immediate(connection) or self._waited
        self._forget_what_others_changed(connection, tx)
        try:
            for job in jobs:
                self._run(job, tx)
            connection.execute("COMMIT")
        except BaseException:
            tx.memo.clear()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        # Inline: this runs for every transaction.
        try:
            found = os.stat(self._file.path)
            moved = (found.st_dev, found.st_ino) != self._file.opened
        except OSError:
            moved = True
        if moved:
            self._file.check()

    def _check_file(self) -> None:
        try:
            found = os.stat(self._file.path)
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._file.opened:
            self._file.check()

    def _forget_what_others_changed(
        self, connection: sqlite3.Connection, tx: SqlTransaction
    ) -> None:
        """Clear the memo if another connection has committed since the last transaction."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(tx.memo) > _MEMO_LIMIT:
            self._version = version
            tx.memo.clear()

    def _run(self, job: Job, tx: SqlTransaction) -> None:
        tx.now = self._clock() if job.at is None else job.at
        tx.wrote = 0
        job.error = job.value = None
        try:
            job.value = ledger.run(job.op, tx)
        except BaseException as error:
            if is_storage_trouble(error):
                raise
            fallback = getattr(job.op, "fallback", None)
            if fallback is not None and is_unstorable(error):
                _log.warning("%s: stored without its values: %s", self._name, error)
                job.op = fallback
                raise OtherwiseAgain from error
            job.error = mapped(self._name, error)
            # A job that raised before it wrote needs no rollback.
            if tx.wrote:
                raise OperationFailed from error

    def _ready(self) -> SqlTransaction:
        if self._connection is None or self._tx is None:
            self._connection = self._connect()
            self._tx = self._transaction(self._connection.cursor())
            self._tx.memo_lasts = True  # until `data_version` says that another process wrote
        return self._tx

    def _disconnect(self) -> None:
        connection, self._connection, self._tx = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def begin_immediate(connection: sqlite3.Connection | sqlite3.Cursor) -> bool:
    """Begin as the only writer; returns whether it had to wait for another process (up to 30 s)."""
    deadline = 0.0
    while True:
        try:
            # Not deferred: that could fail at the first write, after reads that it depends on.
            connection.execute("BEGIN IMMEDIATE")
            return deadline > 0
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            if not deadline:
                deadline = time.monotonic() + BUSY_SECONDS
            elif time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.0002, 0.002))  # noqa: S311 - jitter, no secret
