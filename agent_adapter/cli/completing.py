"""Completion of ids and of the names of tools in a shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

import typer

_COMPLETED = 200


def completing(kind: str) -> Callable[[typer.Context, str], list[str]]:
    """Completes ids of a kind from the store of the command line."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # A shell waits for the answer: whatever is wrong, there is nothing to complete.
        with contextlib.suppress(Exception):
            return asyncio.run(_beginnings(ctx, kind, incomplete))
        return []

    return complete


def complete_tools(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes the names of the tools of TARGET; this runs its module."""
    from agent_adapter.cli.target import load_registry

    target = ctx.params.get("target")
    with contextlib.suppress(Exception, SystemExit), open(os.devnull, "w") as nowhere:
        if target and not ctx.params.get("factory"):
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                names = load_registry(str(target)).names()
            return [name for name in names if name.startswith(incomplete)]
    return []


async def _beginnings(ctx: typer.Context, kind: str, incomplete: str) -> list[str]:
    from agent_adapter.cli.acting import actor_of
    from agent_adapter.store.opening import missing_store, open_store
    from agent_adapter.store.prefixes import beginning_with

    url, tenant = ctx.params.get("store"), ctx.params.get("tenant")
    if missing_store(url) is not None:
        return []
    async with contextlib.aclosing(open_store(url)) as store:
        actor = await actor_of(store, tenant, "viewer", None)
        within = actor.tenant if kind in ("approval", "run") else actor.within
        return await store.read(lambda tx: beginning_with(tx, kind, incomplete, within, _COMPLETED))
