"""Transactions of one process's writer: the locks of a batch, its operations, one commit."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from agent_adapter.store import ledger
from agent_adapter.store.positions import MEMO
from agent_adapter.store.postgres.buffer import BufferedTransaction, BufferRefused
from agent_adapter.store.postgres.clock import ServerClock
from agent_adapter.store.postgres.connection import (
    Connection,
    PostgresCursor,
    is_later,
    is_unstorable,
    mapped,
    said,
)
from agent_adapter.store.postgres.locks import KeyMissing, keys_of, taking
from agent_adapter.store.sql import writer
from agent_adapter.store.sql.jobs import Job, OperationFailed, OtherwiseAgain

_NOW_AND_ID = "SELECT extract(epoch FROM clock_timestamp())::float8, pg_current_xact_id()::text"
_ENDS_SECONDS = 2.0

_log = logging.getLogger("agent_adapter.store")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unsure:
    """A transaction whose commit was not answered: its number, jobs, and an entry that it wrote."""

    id: str
    jobs: tuple[Job, ...]
    entry: tuple[str, int, bytes] | None


class PostgresWriter(writer.StoreWriter):
    """The writer thread of a process.

    `connect` opens the connection, in the thread; `transaction` wraps its cursor. `tell` is called
    with the names of the tables that a committed batch has changed.
    """

    batch = 64
    advice = "see that the server runs, takes writes and has room"

    def __init__(
        self,
        *,
        name: str,
        connect: Callable[[], Connection],
        transaction: Callable[[PostgresCursor], BufferedTransaction],
        clock: ServerClock,
        tell: Callable[[Iterable[str]], None],
    ) -> None:
        super().__init__(name=name, clock=clock)
        self._server_clock = clock
        self._connect = connect
        self._transaction = transaction
        self._tell = tell
        self._connection: Connection | None = None
        self._tx: BufferedTransaction | None = None
        self._unsure: _Unsure | None = None

    def abandoned(self) -> list[object]:
        """The objects that a forked child must keep and never use."""
        return [self._connection, self._tx, *super().abandoned()]

    def _trouble(self, error: BaseException) -> writer.Trouble:
        if is_later(error):
            return "later"
        return "refused" if isinstance(error, psycopg.Error) else "fatal"

    def _transact(self, jobs: Sequence[Job]) -> None:
        tx = self._ready()
        connection = self._connection
        assert connection is not None  # noqa: S101 - `_ready` made it
        self._settle_unsure(connection)
        jobs = [job for job in jobs if not job.written]
        if not jobs:
            return
        tx.changed.clear()
        position = tx.memo.get(MEMO)
        tx.memo.clear()
        if position is not None:  # the server's clock leads on from it, also for other processes
            tx.memo[MEMO] = position
        tx.start(buffering=not any(job.plain for job in jobs))
        try:
            id = self._begin(tx, jobs)
            for job in jobs:
                self._run(job, tx, connection)
            self._end(connection, tx, id, jobs)
        except BufferRefused as refused:
            connection.execute("ROLLBACK")
            for job in jobs:
                job.plain = True
            raise OtherwiseAgain from refused
        except BaseException:
            if not connection.closed and self._unsure is None:
                connection.execute("ROLLBACK")
            raise
        if tx.changed:
            self._tell(tx.changed)

    def _begin(self, tx: BufferedTransaction, jobs: Sequence[Job]) -> str:
        """Begin, take the locks, ask for the time, and read: one round trip.

        The transaction's number.
        """
        ops = [job.op for job in jobs]
        tx.held = None if any(job.alone for job in jobs) else keys_of(ops)
        row = tx.begin(ops, [("BEGIN", []), *taking(tx.held), (_NOW_AND_ID, [])])
        self._server_clock.set(row[0])
        return str(row[1])

    def _end(
        self, connection: Connection, tx: BufferedTransaction, id: str, jobs: Sequence[Job]
    ) -> None:
        heads = ((run, head) for run, head in tx.memo.items() if "hash" in head)
        entry = next(((run, head["seq"], head["hash"]) for run, head in heads), None)
        # From here until the answer nobody knows whether it was committed.
        self._unsure = _Unsure(id=id, jobs=tuple(jobs), entry=entry)
        try:
            done = tx.commit()
        except (psycopg.Error, BufferRefused):
            if not connection.closed:
                self._unsure = None  # the server has answered: it was not
            raise
        self._unsure = None
        if done != "COMMIT":
            raise errors.InFailedSqlTransaction("the server rolled the transaction back")

    def _settle_unsure(self, connection: Connection) -> None:
        """Find out about the transaction whose commit was not answered, before anything else."""
        unsure = self._unsure
        if unsure is None:
            return
        if self._was_committed(connection, unsure):
            for job in unsure.jobs:
                job.written = True
        self._unsure = None

    def _was_committed(self, connection: Connection, unsure: _Unsure) -> bool:
        until = time.monotonic() + _ENDS_SECONDS
        while (status := _status(connection, unsure.id)) == "in progress":
            if time.monotonic() > until:
                raise psycopg.OperationalError("an earlier transaction has not ended yet")
            time.sleep(0.02)
        if status == "aborted" or unsure.entry is None:
            return status == "committed"
        # A server that took over may have given the number again, or have lost the transaction.
        run_id, seq, link = unsure.entry
        found = connection.execute(
            "SELECT hash FROM ledger WHERE run_id = $1 AND seq = $2", [run_id, seq]
        ).fetchone()
        return found is not None and bytes(found[0]) == link

    def _run(self, job: Job, tx: BufferedTransaction, connection: Connection) -> None:
        tx.now = self._clock() if job.at is None else job.at
        tx.wrote = 0
        job.error = job.value = None
        try:
            job.value = ledger.run(job.op, tx)
        except BufferRefused:
            raise  # whose row it was is not known
        except KeyMissing as missing:
            job.alone = True
            raise OtherwiseAgain from missing
        except BaseException as error:
            if is_later(error):
                raise
            fallback = getattr(job.op, "fallback", None)
            if fallback is not None and is_unstorable(error):
                _log.warning("%s: stored without its values: %s", self._name, said(error))
                job.op = fallback
                raise OtherwiseAgain from error
            job.error = mapped(self._name, error)
            # After an error of the server the whole transaction is void.
            if tx.wrote or connection.info.transaction_status == TransactionStatus.INERROR:
                raise OperationFailed from error

    def _ready(self) -> BufferedTransaction:
        if self._connection is None or self._tx is None or self._connection.closed:
            self._disconnect()
            self._connection = self._connect()
            self._tx = self._transaction(PostgresCursor(self._connection))
        return self._tx

    def _disconnect(self) -> None:
        connection, self._connection, self._tx = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()


def _status(connection: Connection, id: str) -> str | None:
    """What became of a transaction; `None` where this server knows nothing of it."""
    try:
        row = connection.execute("SELECT pg_xact_status($1::text::xid8)", [id]).fetchone()
    except errors.InvalidParameterValue:
        return None  # a number that this server has not given yet
    return None if row is None else row[0]
