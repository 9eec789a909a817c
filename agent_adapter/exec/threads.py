"""Worker threads for sync functions: daemons, so that one that hangs never holds up an exit.

There is a pool for tools, one for reviewers and one for rules and hooks, 32 threads each: hanging
tools and slow reviewers block nothing else. A function that calls another tool keeps its
thread meanwhile; the inner one takes a free thread of its pool, or else runs in its caller's slot,
one after the other. So nothing waits for a thread that its own caller holds.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from agent_adapter.core.errors import ToolBusy

SIZE = 32
"""Threads of one pool at the most, not counting those that run in the slot of a caller."""

Late = Callable[[Any, BaseException | None], None]
Entered = Callable[[], None]


class _Job:
    __slots__ = (
        "begun",
        "context",
        "entered",
        "error",
        "finished",
        "function",
        "future",
        "given_up",
        "late",
        "loop",
        "slot",
        "value",
    )

    def __init__(
        self, function: Callable[[], Any], late: Late | None, entered: Entered | None
    ) -> None:
        self.function = function
        self.late = late
        self.entered = entered
        self.begun = False
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.given_up = False
        self.finished = False
        self.slot: _Slot | None = None
        self.value: Any = None
        self.error: BaseException | None = None


class _Slot:
    """A thread's slot in its pool, lent to the calls that its function makes."""

    __slots__ = ("_busy", "_lock", "_turn", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[WorkerPool, _Job]] = deque()
        self._busy = False
        self._turn = 0

    def take(self, pool: WorkerPool, job: _Job) -> None:
        """Run the job of `pool` here, after those that came before it."""
        job.slot = self
        with self._lock:
            self._waiting.append((pool, job))
            if self._busy:
                return
            self._busy = True
            turn = self._turn
        self._start(turn)

    def pass_by(self) -> None:
        """The function that runs here hangs: start the next one in another thread."""
        with self._lock:
            self._turn += 1
            turn = self._turn
        self._start(turn)

    def _start(self, turn: int) -> None:
        name = "agent-adapter-nested"
        threading.Thread(target=self._work, args=(turn,), name=name, daemon=True).start()

    def _work(self, turn: int) -> None:
        while True:
            with self._lock:
                if turn != self._turn:
                    return
                if not self._waiting:
                    self._busy = False
                    return
                pool, job = self._waiting.popleft()
            pool.perform(job)


_held: contextvars.ContextVar[_Slot | None] = contextvars.ContextVar(
    "agent_adapter_slot", default=None
)
"""The slot of the function that is running, in whatever loop or thread its calls are made."""


class WorkerPool:
    """Runs sync functions off the event loop, with the caller's context variables.

    A caller that gives up (time-out, cancellation) leaves its thread busy until the function ends;
    `late` then gets its outcome. With half the threads lost that way new work is refused. A
    function whose caller gave up before a thread took it never runs.
    """

    def __init__(self, size: int = SIZE, name: str = "tool") -> None:
        self._size = size
        self._name = name
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._queued = 0
        self.lost = 0

    async def run(
        self,
        function: Callable[[], Any],
        late: Late | None = None,
        *,
        entered: Entered | None = None,
    ) -> Any:
        """The result of `function()`; `ToolBusy` if too many threads hang.

        `entered` is called when a thread is about to run it: from then on it will.
        """
        if self.lost >= self._size // 2:
            raise ToolBusy(
                f"{self.lost} of {self._size} worker threads hang in tools that timed out"
            )
        job = _Job(function, late, entered)
        self._start(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._give_up(job)
            raise

    def _give_up(self, job: _Job) -> None:
        with self._lock:
            if job.finished:
                return
            job.given_up = True
            self.lost += job.begun
        if job.begun and job.slot is not None:
            job.slot.pass_by()

    def _start(self, job: _Job) -> None:
        slot = _held.get()
        with self._lock:
            room = self._queued < self._idle or self._threads < self._size
            if slot is None or room:
                self._queued += 1
                if self._queued > self._idle and self._threads < self._size:
                    self._threads += 1
                    name = f"agent-adapter-{self._name}-{self._threads}"
                    threading.Thread(
                        target=self._work, args=(self._jobs,), name=name, daemon=True
                    ).start()
                slot = None
        if slot is None:
            self._jobs.put(job)
        else:
            slot.take(self, job)

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = jobs.get()
            with self._lock:
                self._idle -= 1
                self._queued -= 1
            self.perform(job)

    def perform(self, job: _Job) -> None:
        """Run the job in this thread, unless its caller has given up."""
        if not self._begin(job):
            return
        try:
            job.value = job.context.run(_in_a_slot, job.function)
        except BaseException as exc:
            job.error = exc
        self._finish(job)

    def _begin(self, job: _Job) -> bool:
        # Under the lock: a job whose caller gives up either never runs, or was entered before.
        with self._lock:
            if job.given_up:
                return False
            job.begun = True
            if job.entered is not None:
                job.entered()
            return True

    def _finish(self, job: _Job) -> None:
        with self._lock:
            job.finished = True
            given_up = job.given_up
            if given_up:
                self.lost -= 1
        if given_up:
            if job.late is not None:
                job.late(job.value, job.error)
            return
        try:
            job.loop.call_soon_threadsafe(_deliver, job)
        except RuntimeError:
            if job.late is not None:
                job.late(job.value, job.error)


def _in_a_slot(function: Callable[[], Any]) -> Any:
    _held.set(_Slot())
    return function()


def _deliver(job: _Job) -> None:
    if job.future.done():
        if job.late is not None:
            job.late(job.value, job.error)
    elif job.error is None:
        job.future.set_result(job.value)
    elif isinstance(job.error, StopIteration):
        job.future.set_exception(RuntimeError("the tool raised StopIteration"))
    else:
        job.future.set_exception(job.error)


pool = WorkerPool()
"""Where the sync tools of this process run."""

reviewers = WorkerPool(name="reviewer")
"""Where sync reviewers wait for people."""

rules = WorkerPool(name="rule")
"""Where sync confirm rules and hooks run."""
