"""Step 4: whether this call was begun before, and what follows from that."""

from __future__ import annotations

import dataclasses
from typing import Any

from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalExpired,
    GuardrailBlocked,
    RunLimitExceeded,
    ToolError,
    ToolFailed,
    ToolInDoubt,
    ToolInFlight,
    ToolTimeout,
)
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.call import Call
from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.identity import issue_again, look_up
from agent_adapter.store.intents import Begun

__all__ = ["Recorded", "find", "name", "refused", "renew", "settle"]

_ERRORS: dict[str, type[AgentAdapterError]] = {
    error.kind: error for error in (ToolError, ToolFailed, ToolTimeout, GuardrailBlocked)
}


class Recorded:
    """The recorded end of a call: hand it out instead of running."""

    __slots__ = ("row", "value")

    def __init__(self, value: Any, row: Row) -> None:
        self.value = value
        self.row = row


async def find(call: Call) -> Recorded | None:
    """The recorded end of this call, or `None` with its identity claimed for a run."""
    if call.call_key is not None:
        return None  # its gate has looked already
    intent = call.intent()
    store = call.executor.store
    if call.ctx.reexecutes and call.spec.effects != "write":
        # It has no row yet, but it may be under way.
        twin = call.executor.in_flight.twin(call)
        if twin is not None:
            await call.executor.in_flight.ended(twin)
    if call.ctx.attempt > 1 or call.ctx.reexecutes:
        begun = await store.write(lambda tx: issue_again(tx, intent))
    else:
        begun = await store.read(lambda tx: look_up(tx, intent))
    if begun.state == "new":
        call.executor.in_flight.claim(call, begun.n)
        if call.asked:
            call.earlier = begun.rows  # one question then shows them, too
        return None
    if begun.state == "again":
        call.call_key, call.n, call.matched = begun.call_key, begun.n, True
        return None
    found = await settle(call, begun)
    if found is None:
        await renew(call)
    return found


async def name(call: Call) -> None:
    """Give a read that starts a run of its own the identity that the run is named after.

    What was recorded in the background is counted first: at the next attempt it is the same call.
    """
    store = call.executor.store
    await store.flush()
    intent = call.intent()
    begun = await store.read(lambda tx: look_up(tx, intent))
    if call.call_key is None:
        call.executor.in_flight.claim(call, begun.n)


async def renew(call: Call) -> None:
    """Give a call that would add to `call.earlier` an identity of its own to ask under."""
    in_flight = call.executor.in_flight
    in_flight.release(call)
    call.call_key = call.n = None
    seen = call.accepted | {row["call_key"] for row in call.earlier}
    intent = dataclasses.replace(call.intent(), accepted=seen)
    begun = await call.executor.store.read(lambda tx: look_up(tx, intent))
    in_flight.claim(call, begun.n)


async def settle(call: Call, begun: Begun) -> Recorded | None:
    """Act on an earlier call: its outcome or error, or `None` with `call.earlier` to ask about."""
    row = begun.row
    if row is None:
        return None
    if begun.state == "running":
        await call.executor.in_flight.ended(begun.call_key)
        await call.executor.store.flush()  # the end of a cancelled call is only queued
        row = await call.executor.store.read(lambda tx: tx.get("calls", begun.call_key))
        if row is None or row["state"] == "open":
            raise ToolInFlight(f"{call.spec.name} is under way; wait for it")
        if row["ending"] == "aborted":
            raise ToolInFlight(f"{call.spec.name} was stopped before it began; call it again")
        if row["ending"] == "unknown":
            raise doubt(call.spec, row)
        return await recorded(call, row)
    if begun.state == "in-flight":
        raise ToolInFlight(f"{call.spec.name} is under way in another process; wait for it")
    if begun.state == "in-doubt":
        raise doubt(call.spec, row)
    if begun.state == "unknown":
        call.earlier = (row,)
        return None
    return await recorded(call, row)


def doubt(spec: ToolSpec, row: Row) -> ToolInDoubt:
    """A write whose effect nobody knows."""
    return ToolInDoubt(
        f"{spec.name} was begun before and nobody knows whether it happened: it is not repeated; "
        f"see what it did, then run `agent-adapter ledger resolve {row['call_key']}`",
        call_key=row["call_key"],
    )


def refused(call: Call, begun: Begun) -> AgentAdapterError:
    """The error for a `begin_call` that refused without finding an earlier call."""
    name = call.spec.name
    if begun.state == "limit":
        return RunLimitExceeded(f"{name}: {limit_text(call, begun.reason)}", limit=begun.reason)
    if begun.state == "refused":
        state = begun.refusal.state if begun.refusal is not None else ""
        error = ApprovalExpired if state == "expired" else ApprovalDenied
        return error(f"{name}: {begun.reason}")
    if begun.state == "stopped":
        return ApprovalDenied(f"{name}: {begun.reason}")
    return ToolInFlight(f"{name}: {begun.reason}")


def limit_text(call: Call, limit: str) -> str:
    """What a model reads about a limit."""
    value = getattr(call.limits, limit, None)
    return f"the run has reached its limit {limit}={value}"


async def recorded(call: Call, row: Row) -> Recorded:
    """The outcome of an ended call; raises the error that it ended with."""
    if row["ending"] in ("no-effect", "failed") or row["error_kind"] is not None:
        kind = row["error_kind"] or ToolFailed.kind
        error = _ERRORS.get(kind, ToolError)(row["error_text"] or f"{call.spec.name} failed")
        error.kind = kind  # type: ignore[misc]  # a kind that the tool's author made
        raise error
    kept = await call.executor.store.read(_payload_of(row["result"]))
    if kept is None:
        raise ToolInDoubt(
            f"{call.spec.name} was done; its result is no longer kept", call_key=row["call_key"]
        )
    tag, _, data = kept.partition(b"\n")
    if tag == b"opaque":
        raise ToolInDoubt(
            f"{call.spec.name} was done; its result could not be kept", call_key=row["call_key"]
        )
    return Recorded(call.spec.decode_result(tag.decode(), data), row)


def _payload_of(id: str | None) -> Any:
    def op(tx: Transaction) -> bytes | None:
        return ledger.payload(tx, id)

    return op
