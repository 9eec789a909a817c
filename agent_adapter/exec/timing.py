"""Time limits that end a call for its caller, also where the function swallows its cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from agent_adapter.exec.threads import Late

GRACE_SECONDS = 0.5
"""How long a function whose time is up may take to clean up before its caller goes on."""

_LOOK_SECONDS = 0.05


class Countdown:
    """The seconds that a tool may run; it stands still while a call inside waits for a person."""

    __slots__ = ("_left", "_lock", "_since", "_stops")

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._since = time.monotonic()
        self._stops = 0
        self._lock = threading.Lock()

    def left(self) -> float:
        """Seconds that remain; never 0 while it stands still."""
        with self._lock:
            if self._stops:
                return max(self._left, _LOOK_SECONDS)
            return self._left - (time.monotonic() - self._since)

    def stop(self) -> None:
        """Stand still until as many `go_on` came."""
        with self._lock:
            if not self._stops:
                self._left -= time.monotonic() - self._since
            self._stops += 1

    def go_on(self) -> float:
        """Run again if nothing else stops it; the seconds that remain."""
        with self._lock:
            self._stops -= 1
            if not self._stops:
                self._since = time.monotonic()
            return self._left


class Timed(Protocol):
    """The parts of a call that its time-out is made of."""

    parent: Any
    countdown: Countdown | None
    ctx: Any


@contextmanager
def person_asked(call: Timed) -> Iterator[None]:
    """Stop the time-outs of the tools around a call while it waits for a person."""
    outers = []
    outer = call.parent
    while outer is not None:
        if outer.countdown is not None:
            outers.append(outer)
            outer.countdown.stop()
        outer = outer.parent
    try:
        yield
    finally:
        for each in outers:
            each.ctx.deadline = time.monotonic() + each.countdown.go_on()


async def within(
    limit: Countdown | float,
    work: Coroutine[Any, Any, Any],
    late: Late | None = None,
    *,
    context: contextvars.Context | None = None,
) -> Any:
    """What `work` gives; `TimeUp` when the limit has passed, whatever `work` does about it.

    `late` is told the end of one that swallowed its cancellation.
    """
    countdown = limit if isinstance(limit, Countdown) else Countdown(limit)
    task = asyncio.get_running_loop().create_task(work, context=context)
    try:
        while (left := countdown.left()) > 0 and not task.done():
            await asyncio.wait({task}, timeout=left)
    except asyncio.CancelledError:
        if task.done():
            _tell(task, late)
            raise
        await _stop(task, late)
        if not task.done():
            raise
        return await task
    if not task.done():
        await _stop(task, late)
        if not task.done():
            raise TimeUp
        if task.cancelled() or task.exception() is None:
            _tell(task, late)
            raise TimeUp
    return await task


class TimeUp(TimeoutError):
    """The limit that was set here has passed, not one inside the function."""


async def _stop(task: asyncio.Task[Any], late: Late | None) -> None:
    """Cancel the task; return when it has ended, or has had its grace and goes on alone."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
    finally:
        if not task.done():
            _going_on.add(task)  # the event loop itself holds tasks weakly
            task.add_done_callback(lambda done: _tell(done, late))


def _tell(task: asyncio.Task[Any], late: Late | None) -> None:
    _going_on.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if late is not None:
        late(None if error is not None else task.result(), error)


_going_on: set[asyncio.Task[Any]] = set()
