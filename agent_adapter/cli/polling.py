"""Commands that poll the store until they are stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.acting import Actor, with_actor
from agent_adapter.cli.output import print_text

if TYPE_CHECKING:
    from agent_adapter.store.base import Store

POLL_SECONDS = 0.5
"""The time between two polls."""

Seconds = Annotated[
    float | None,
    typer.Option("--for", min=0, metavar="SECONDS", help="Stop after this time; else at Ctrl-C."),
]
"""`--for SECONDS`."""


def poll(
    url: str | None,
    tenant: str | None,
    look: Callable[[Store, Actor], Awaitable[bool]],
    seconds: float | None,
) -> None:
    """Call `look` until it returns true, the time is over, or Ctrl-C."""

    async def _work(store: Store, actor: Actor) -> None:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        while not await look(store, actor):
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - loop.time())
            if left <= 0:
                return
            await asyncio.sleep(left)

    with contextlib.suppress(KeyboardInterrupt):
        with_actor(url, tenant, _work)


def print_json_line(value: Any) -> None:
    """Print one JSON object on one line and flush, so that a reader in a pipe gets it at once."""
    print_text(json.dumps(value, default=str))
