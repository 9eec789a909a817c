"""Worker threads for sync tools: 32 daemons, so that one that hangs never holds up an exit."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from agent_adapter.core.errors import ToolBusy

SIZE = 32
"""Threads at the most."""

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
        self.value: Any = None
        self.error: BaseException | None = None


class WorkerPool:
    """Runs sync functions off the event loop, with the caller's context variables.

    A caller that gives up (time-out, cancellation) leaves its thread busy until the function ends;
    `late` is then told what it did. With half the threads lost that way new work is refused. A
    function whose caller gave up before a thread took it never runs.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
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
        """What `function()` returns or raises; `ToolBusy` when too many threads are lost.

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
            with self._lock:
                if not job.finished:
                    job.given_up = True
                    self.lost += job.begun
            raise

    def _start(self, job: _Job) -> None:
        with self._lock:
            self._queued += 1
            if self._queued > self._idle and self._threads < self._size:
                self._threads += 1
                name = f"agent-adapter-tool-{self._threads}"
                threading.Thread(
                    target=self._work, args=(self._jobs,), name=name, daemon=True
                ).start()
        self._jobs.put(job)

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = jobs.get()
            if not self._begin(job):
                continue
            try:
                job.value = job.context.run(job.function)
            except BaseException as exc:
                job.error = exc
            self._finish(job)

    def _begin(self, job: _Job) -> bool:
        # Under the lock: who gives up leaves a job that never runs, or one that was entered.
        with self._lock:
            self._idle -= 1
            self._queued -= 1
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
"""The pool of this process."""
