"""Taint: labels for untrusted text that a run has read, durable before the result is released."""

from __future__ import annotations

from agent_adapter.exec.call import Call
from agent_adapter.store import taint


async def labels(call: Call) -> tuple[str, ...]:
    """The labels of the call's run and thread, read once per question."""
    if call.labels is None:
        scopes = call.scopes()
        call.labels = await call.runtime.store.read(lambda tx: taint.labels(tx, scopes))
    return call.labels


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
