"""Work that comes back: a task per sweeper, each at its own interval, none in the other's way."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable

__all__ = ["Sweepers"]

_log = logging.getLogger("agent_adapter.network")


class Sweepers:
    """Runs functions at intervals until it is closed; one that raises is logged and runs again."""

    def __init__(self, context: contextvars.Context) -> None:
        self._context = context
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` every `seconds`; 0 leaves it off. A sweeper of the same name is replaced."""
        self.stop(name)
        if seconds > 0:
            self._tasks[name] = asyncio.create_task(
                _repeat(name, seconds, work),
                name=f"agent-adapter-{name}",
                context=self._context.copy(),
            )

    def stop(self, name: str) -> None:
        """End the sweeper of that name, if there is one."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End all, and wait for them."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _repeat(name: str, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception:
            _log.exception("the sweeper %s failed; it runs again in %g s", name, seconds)
