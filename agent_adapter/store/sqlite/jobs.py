"""What waits for the writer: operations, who asked for them, and how they hear of the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agent_adapter.store.base import Operation

_log = logging.getLogger("agent_adapter.store")

Loop = asyncio.AbstractEventLoop
Future = asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class Job:
    """An operation, who waits for it, and what came of it."""

    op: Operation[Any]
    at: float | None
    loop: Loop | None
    future: Future | None
    value: Any = None
    error: BaseException | None = None


def deliver(batch: Iterable[Job]) -> None:
    """Tell every loop, once, what came of its jobs; a loop's wake-up costs more than a job."""
    by_loop: dict[Loop, list[Job]] = {}
    for job in batch:
        if job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
        elif job.error is not None:
            _log.error("a posted operation failed", exc_info=job.error)
    for loop, jobs in by_loop.items():
        call(loop, _settle, jobs)


def call(loop: Loop, function: Callable[[Any], None], argument: Any) -> None:
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


def wake(room: Future) -> None:
    """Let one who waits look again."""
    if not room.done():
        room.set_result(None)
