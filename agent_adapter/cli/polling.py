"""Commands that go on until stopped: how often they look, and how they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.options import with_store

if TYPE_CHECKING:
    from agent_adapter.store.base import Store

__all__ = ["Seconds", "follow", "print_line"]

POLL_SECONDS = 0.5
"""How long a command that follows waits before it looks again."""

Seconds = Annotated[
    float | None,
    typer.Option("--for", min=0, metavar="SECONDS", help="Stop after so long; else at Ctrl-C."),
]
"""`--for SECONDS`."""


def follow(
    url: str | None, look: Callable[[Store], Awaitable[bool]], seconds: float | None
) -> None:
    """Call `look` again and again until it says that it is over, the time is up, or Ctrl-C."""

    async def _work(store: Store) -> None:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        while not await look(store):
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - loop.time())
            if left <= 0:
                return
            await asyncio.sleep(left)

    try:
        with_store(url, _work)
    except KeyboardInterrupt:
        return


def print_line(value: Any) -> None:
    """One JSON object on one line, at once, so that a reader can follow."""
    print(json.dumps(value, default=str), flush=True)
