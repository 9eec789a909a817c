"""`RunLimits.max_seconds` stands still while a person is asked through a port without records.

A port that keeps its records in the run's store needs none of this: they say when it waited.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from agent_adapter.core.errors import StoreError
from agent_adapter.exec.call import Call
from agent_adapter.store import limits


@asynccontextmanager
async def stands_still(call: Call) -> AsyncIterator[None]:
    """Let the run's seconds stand still; questions that wait at the same time count once."""
    store, run_id, waits = call.runtime.store, call.root_run_id, call.runtime.waits
    began = await store.read(lambda tx: tx.now)
    since, waiting = waits.get(run_id, (began, 0))
    waits[run_id] = (since, waiting + 1)
    try:
        yield
    finally:
        since, waiting = waits.pop(run_id)
        if waiting > 1:
            waits[run_id] = (since, waiting - 1)
        else:
            with suppress(StoreError):
                store.post(partial(limits.stood_still, run_id=run_id, since=since))
