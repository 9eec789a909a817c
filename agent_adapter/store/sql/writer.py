"""The writer thread: it commits all waiting operations in one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Operation
from agent_adapter.store.sql.jobs import (
    Future,
    Job,
    Loop,
    OperationFailed,
    OtherwiseAgain,
    closed,
    unwritten,
)

T = TypeVar("T")

QUEUE_LIMIT = 10_000
"""The most waiting operations; further callers wait until there is room."""

BEAT_SECONDS = 5.0
"""How often a store in use renews the row of its process."""

Trouble = Literal["later", "refused", "fatal"]
"""What is done about an error: try again for a while; keep posts and tell callers; tell all."""

_TRY_SECONDS = 5.0
_OWED_SECONDS = 1.0
_COURTESY_SECONDS = 0.0005
_JOIN_SECONDS = 5.0

_log = logging.getLogger("agent_adapter.store")


class StoreWriter:
    """A bounded queue and the thread that drains it.

    A database has a subclass with its transactions: `_transact`, `_disconnect`, `_trouble`.
    `beat` renews the row of this process; with `beats_when_idle` also while nothing is written.
    """

    batch = 256
    """Operations in one transaction, at most."""

    advice = ""
    """What to look at when the database cannot be written."""

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        beat: Operation[Any] | None = None,
        beats_when_idle: bool = False,
    ) -> None:
        self._name = name
        self._clock = clock
        self._beat = beat
        self._beats_when_idle = beats_when_idle
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._owed: deque[Job] = deque()
        self._room: deque[tuple[Loop, Future]] = deque()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopped = False
        self._ended = False
        self._beaten_at = -BEAT_SECONDS
        self._waited = False
        # Held during a transaction: a fork waits for it, so that no child begins inside one.
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
        return [self._queue, self._owed, self._thread, self.gate]

    def _transact(self, jobs: Sequence[Job]) -> None:
        """Run and commit the jobs in one transaction.

        Raises `OperationFailed`, rolled back, if a job raised after it had written.
        """
        raise NotImplementedError

    def _disconnect(self) -> None:
        """Drop the connection; the next transaction opens another."""
        raise NotImplementedError

    def _trouble(self, error: BaseException) -> Trouble:
        """What is done about an error of a transaction."""
        raise NotImplementedError

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
                # Where a lock is not fair, the other process would starve without a pause.
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
            timeout = BEAT_SECONDS if self._beats_when_idle else None
            job = self._queue.get(timeout=_OWED_SECONDS if batch else timeout)
            while job is not None:
                batch.append(job)
                if len(batch) >= self.batch:
                    break
                job = self._queue.get_nowait()
        except queue.Empty:
            job = batch[-1] if batch else Job(_nothing, None, None, None)
        late = time.monotonic() - self._beaten_at >= BEAT_SECONDS
        if self._beat is not None and late and (batch or job is not None):
            batch.append(Job(self._beat, None, None, None))
        return batch, job is None

    def _debts(self) -> list[Job]:
        """Posted jobs that could not be written before, up to one batch; they come first."""
        return [self._owed.popleft() for _ in range(min(len(self._owed), self.batch))]

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
            except BaseException as error:
                self._disconnect()
                trouble = self._trouble(error)
                failing_since = failing_since or time.monotonic()
                if trouble == "later" and time.monotonic() - failing_since < _TRY_SECONDS:
                    time.sleep(random.uniform(0.02, 0.1))  # noqa: S311 - jitter, no secret
                    continue
                # After an unexpected error a retry would not help: callers must get it.
                return self._give_up(pending, error, last=last or trouble == "fatal")
            failing_since = None
            del pending[: len(jobs)]
        self._beaten_at = time.monotonic()
        return None

    def _give_up(self, batch: list[Job], error: BaseException, *, last: bool) -> None:
        """Give callers the error; keep posted jobs, which only the writer can retry."""
        for job in batch:
            job.value = job.error = None
            if job.future is None and job.op != self._beat and not last:
                self._owe(job)
            if job.future is None and not last:
                continue
            job.error = unwritten(self._name, error, self.advice)

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
