"""Taint: labels for untrusted text that a run has read, durable before the result is released."""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.exec.call import Call
from agent_adapter.exec.scope import RunScope, current_scope
from agent_adapter.store import taint
from agent_adapter.store.base import Store
from agent_adapter.store.keys import run_key, run_scope_of


async def labels(call: Call) -> tuple[str, ...]:
    """The labels of the call's run and thread, read once per question."""
    if call.labels is None:
        scopes = call.scopes()
        call.labels = await call.runtime.store.read(lambda tx: taint.labels(tx, scopes))
    return call.labels


async def labels_around(store: Store) -> tuple[str, ...]:
    """The labels of the call or run in which this code runs; `store` is that of a run scope."""
    around = current_scope.get()
    if isinstance(around, Call):
        store, scopes = around.runtime.store, around.scopes()
    elif isinstance(around, RunScope):
        scopes = [around.conversation(), run_scope_of(run_key(around.tenant, around.run_id))]
    else:
        return ()
    return await store.read(lambda tx: taint.labels(tx, scopes))


async def absorb(labels: Iterable[str]) -> None:
    """Label the call in which this code runs with what it has read elsewhere."""
    around = current_scope.get()
    if isinstance(around, Call):
        for label in labels:
            await mark(around, label)


async def mark(call: Call, label: str | None = None) -> None:
    """Label the run and the thread with the untrusted tool they have read."""
    around: Call | None = call
    while around is not None:
        around.foreign = True
        around = around.parent
    scopes = call.scopes()
    name = label or call.spec.name  # one per source: labels per call would grow without limit
    in_flight = call.runtime.in_flight
    known = f"{scopes}{call.spec.name if label is None else label}"
    if in_flight.knows_label(known):
        return
    await call.runtime.store.write(lambda tx: taint.mark(tx, scopes, name))
    call.labels = None
    # Only after the write: no other call may be released on a label that is not durable yet.
    in_flight.remember_label(known)
