"""The writer thread: it commits all waiting operations in one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from agent_adapter.core.ports import Clock
from agent_adapter.store import ledger
from agent_adapter.store.base import Operation
from agent_adapter.store.sql.transaction import SqlTransaction
from agent_adapter.store.sqlite.connection import is_busy, is_storage_trouble, is_unstorable, mapped
from agent_adapter.store.sqlite.file import DatabaseFile, FileMoved
from agent_adapter.store.sqlite.jobs import (
    Future,
    Job,
    Loop,
    OperationFailed,
    OtherwiseAgain,
    closed,
    unwritten,
)
from agent_adapter.store.sqlite.owners import BEAT_SECONDS, Owner

T = TypeVar("T")

QUEUE_LIMIT = 10_000
"""The most waiting operations; further callers wait until there is room."""

BATCH = 256
"""Operations in one transaction, at most."""

BUSY_SECONDS = 30.0
"""The seconds that a transaction waits for that of another process."""

_MEMO_LIMIT = 10_000
_TRY_SECONDS = 5.0
_OWED_SECONDS = 1.0
_COURTESY_SECONDS = 0.0005
_JOIN_SECONDS = 5.0

_log = logging.getLogger("agent_adapter.store")


class Writer:
    """A bounded queue and the thread that drains it.

    `connect` opens the connection, in the thread; `transaction` wraps its cursor.
    """

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
        self._name = name
        self._file = file
        self._connect = connect
        self._transaction = transaction
        self._owner = owner
        self._clock = clock
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._owed: deque[Job] = deque()
        self._room: deque[tuple[Loop, Future]] = deque()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopped = False
        self._ended = False
        self._connection: sqlite3.Connection | None = None
        self._tx: SqlTransaction | None = None
        self._beaten_at = -BEAT_SECONDS
        self._waited = False
        self._version = -1
        # Held during a transaction: a fork waits for it, so that no child begins inside SQLite.
        self.gate = threading.RLock()

    async def write(self, op: Operation[T]) -> T:
        """Run `op` in the thread; return when it is durable."""
        loop = asyncio.get_running_loop()
        while self._queue.qsize() >= QUEUE_LIMIT:
            await self._wait_for_room(loop)
        future: asyncio.Future[T] = loop.create_future()
        self._put(Job(op, None, loop, future))
        return await future

    def post(self, op: Operation[Any]) -> None:
        """Queue `op` with the current time; blocks while the queue is full."""
        while self._queue.qsize() >= QUEUE_LIMIT and threading.current_thread() is not self._thread:
            time.sleep(_COURTESY_SECONDS)
        self._put(Job(op, self._clock(), None, None))

    def stop(self) -> None:
        """Write what is queued, close the connection and end the thread; waits up to 5 s."""
        with self._starting:
            self._stopped = True
            thread = self._thread
            if thread is None:
                return
            self._queue.put(None)
        if thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                _log.error("%s: the writer did not end in %g s", self._name, _JOIN_SECONDS)

    def abandoned(self) -> list[object]:
        """The objects that a forked child must keep and never use."""
        return [self._connection, self._tx, self._queue, self._owed, self._thread, self.gate]

    async def _wait_for_room(self, loop: Loop) -> None:
        room: Future = loop.create_future()
        self._room.append((loop, room))
        # Checked again after it is announced: the writer wakes every waiter that it finds.
        if self._queue.qsize() >= QUEUE_LIMIT:
            await room

    def _put(self, job: Job) -> None:
        if self._thread is None or self._stopped:
            self._start()
        self._queue.put(job)
        if self._ended:
            # It came too late for the thread, or the thread has just taken it.
            late = self._rest()
            for one in late:
                one.error = closed(self._name)
            _deliver(late)

    def _start(self) -> None:
        with self._starting:
            if self._stopped:
                raise closed(self._name)
            if self._thread is None:
                thread = threading.Thread(
                    target=self._work, name="agent-adapter-writer", daemon=True
                )
                self._thread = thread
                thread.start()

    def _work(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._gather()
            if not batch:
                continue
            with self.gate:
                self._commit(batch)
            # After COMMIT: a caller gets a value only when it is durable.
            _deliver(batch)
            self._make_room()
            if self._waited:
                # SQLite's lock is not fair: without a pause the other process would starve.
                self._waited = False
                time.sleep(_COURTESY_SECONDS)
        self._ended = True
        while rest := [*self._debts(), *self._rest()]:
            with self.gate:
                self._commit(rest, last=True)
            _deliver(rest)
        with self.gate:
            self._disconnect()

    def _rest(self) -> list[Job]:
        """The jobs queued after the end was requested."""
        rest = []
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._queue.get_nowait()
                if job is not None:
                    rest.append(job)
        return rest

    def _gather(self) -> tuple[list[Job], bool]:
        """The queued jobs, at least one, and whether they are the last."""
        batch = self._debts()
        if self._owed:
            return batch, False
        try:
            timeout = BEAT_SECONDS if self._owner.needs_beats else None
            job = self._queue.get(timeout=_OWED_SECONDS if batch else timeout)
            while job is not None:
                batch.append(job)
                if len(batch) >= BATCH:
                    break
                job = self._queue.get_nowait()
        except queue.Empty:
            job = batch[-1] if batch else Job(_nothing, None, None, None)
        if time.monotonic() - self._beaten_at >= BEAT_SECONDS and (batch or job is not None):
            batch.append(Job(self._owner.beat, None, None, None))
        return batch, job is None

    def _debts(self) -> list[Job]:
        """Posted jobs that could not be written before, up to one batch; they come first."""
        return [self._owed.popleft() for _ in range(min(len(self._owed), BATCH))]

    def _commit(self, batch: list[Job], *, last: bool = False) -> None:
        """Commit the batch, retrying for 5 s; each job has its result.

        If a job raises after it has written, the batch is rolled back and each job runs alone.
        Posted jobs are kept and retried until the end (`last`).
        """
        pending = list(batch)
        alone = False
        failing_since: float | None = None
        while pending:
            jobs = pending[:1] if alone else pending
            try:
                self._transact(jobs)
            except OperationFailed:
                if not alone:
                    alone = True
                    continue
            except OtherwiseAgain:
                continue
            except FileMoved as error:
                self._disconnect()
                return self._give_up(pending, error, last=last)
            except sqlite3.Error as error:
                self._disconnect()
                failing_since = failing_since or time.monotonic()
                if time.monotonic() - failing_since < _TRY_SECONDS:
                    time.sleep(random.uniform(0.02, 0.1))  # noqa: S311 - jitter, no secret
                    continue
                return self._give_up(pending, error, last=last)
            except BaseException as error:
                # An unexpected error: callers must get it, and a retry would not help.
                self._disconnect()
                return self._give_up(pending, error, last=True)
            failing_since = None
            del pending[: len(jobs)]
        self._beaten_at = time.monotonic()
        return None

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
        self._check_file()

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
        return self._tx

    def _disconnect(self) -> None:
        connection, self._connection, self._tx = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _give_up(self, batch: list[Job], error: BaseException, *, last: bool) -> None:
        """Give callers the error; keep posted jobs, which only the writer can retry."""
        for job in batch:
            job.value = job.error = None
            if job.future is None and job.op != self._owner.beat and not last:
                self._owe(job)
            if job.future is None and not last:
                continue
            job.error = unwritten(self._name, error)

    def _owe(self, job: Job) -> None:
        if len(self._owed) >= QUEUE_LIMIT:
            # The outcomes of writes are always kept; the records of reads are dropped.
            kept = [each for each in self._owed if getattr(each.op, "must_be_kept", False)]
            _log.error("%s: %d records of reads are lost", self._name, len(self._owed) - len(kept))
            self._owed = deque(kept)
        self._owed.append(job)

    def _make_room(self) -> None:
        # Only those who waited when it began: later callers check the queue themselves.
        for _ in range(len(self._room)):
            loop, room = self._room.popleft()
            _call(loop, _wake, room)


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


def _nothing(tx: object) -> None:
    """An operation for an idle writer's transaction."""


def _deliver(batch: Iterable[Job]) -> None:
    """Give every loop the results of its jobs in one call: waking a loop costs more than a job."""
    by_loop: dict[Loop, list[Job]] = {}
    for job in batch:
        if job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
        elif job.error is not None:
            _log.error("a posted operation failed", exc_info=job.error)
    for loop, jobs in by_loop.items():
        _call(loop, _settle, jobs)


def _call(loop: Loop, function: Callable[[Any], None], argument: Any) -> None:
    """Call the function in its loop's thread."""
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(function, argument)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        future = job.future
        if future is None or future.done():
            continue
        if job.error is not None:
            future.set_exception(job.error)
        else:
            future.set_result(job.value)


def _wake(room: Future) -> None:
    """Wake a waiting caller."""
    if not room.done():
        room.set_result(None)
