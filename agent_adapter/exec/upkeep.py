"""Operations for administrators: stop writes or a run, prune a store, copy it."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

from agent_adapter.core.errors import AgentAdapterError, StoreError
from agent_adapter.core.inert import short
from agent_adapter.exec import large
from agent_adapter.store import pruning, switch
from agent_adapter.store.base import Store

_AT_ONCE = 50


async def stop_writes(store: Store, *, by: str, reason: str = "") -> None:
    """Refuse every write of this store that has not begun, in every process, until allowed.

    Refused calls are `ApprovalDenied` with `reason` in the text; reads go on.
    """
    await store.write(lambda tx: switch.stop_writes(tx, by=by, reason=reason))


async def allow_writes(store: Store, *, by: str) -> bool:
    """Allow writes again; returns whether they were stopped."""
    return await store.write(lambda tx: switch.allow_writes(tx, by=by))


async def stopped(store: Store) -> str | None:
    """Why writes are stopped; `None` while they may run."""
    return await store.read(switch.stopped)


async def cancel_run(store: Store, run_id: str, *, by: str, reason: str = "") -> None:
    """Stop new writes of the run, and of the runs that its tools start, in every process.

    If the run has limits, its reads stop as well. Calls under way continue.
    """
    await store.flush()
    known = await store.write(lambda tx: switch.cancel_run(tx, run_id, by=by, reason=reason))
    if not known:
        raise AgentAdapterError(f"no run {short(run_id)} in {store.url}; nothing was cancelled")


async def prune(store: Store, *, before: float, by: str, dry: bool = False) -> int:
    """Delete the runs that ended before that time (seconds since the epoch); how many.

    Kept are runs with a write under way or in doubt, with an approval that may still be decided or
    used, and with a call that happens once over all runs. The ledger notes the deletion. `dry`
    only counts. A call of a deleted run that is made again is a new call.
    """
    await store.flush()
    runs = await store.read(lambda tx: pruning.old_runs(tx, before))
    if dry:
        return len(runs)
    pruned = 0
    for start in range(0, len(runs), _AT_ONCE):
        some = runs[start : start + _AT_ONCE]
        pruned += await store.write(partial(pruning.prune, runs=some, before=before, by=by))
    await large.sweep(store)
    return pruned


async def back_up(store: Store, to: str | os.PathLike[str]) -> Path:
    """Copy the store and its key, as of one moment, to a new file; returns its path."""
    from agent_adapter.store.sqlite import SqliteStore, sqlite_path
    from agent_adapter.store.sqlite.backup import copy_store

    if not isinstance(store, SqliteStore):
        raise StoreError(
            f"{store.url} is not a file; only a sqlite:/// store can be"
            " backed up so: use the tools of the database, and keep the key file"
        )
    await store.flush()
    target = sqlite_path(to)
    await asyncio.to_thread(copy_store, store.path, target)
    return target
