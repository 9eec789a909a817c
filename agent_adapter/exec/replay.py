"""Replay: finds out whether this call was begun before, and returns its outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalPending,
    ApprovalWithdrawn,
    CallConflict,
    GuardrailBlocked,
    RunLimitExceeded,
    StaleTurn,
    ToolError,
    ToolFailed,
    ToolInDoubt,
    ToolInFlight,
    ToolTimeout,
)
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.call import UNREAD, Call
from agent_adapter.exec.scope import sub_run_id
from agent_adapter.store import approvals, ledger, taint
from agent_adapter.store.base import Operation, Row, Transaction
from agent_adapter.store.identity import entries, issue_again, look_up, place_again
from agent_adapter.store.intents import Begun, Intent

_ERRORS: dict[str, type[AgentAdapterError]] = {
    error.kind: error for error in (ToolError, ToolFailed, ToolTimeout, GuardrailBlocked)
}


_UNUSABLE = {"expired": ApprovalExpired, "withdrawn": ApprovalWithdrawn}


class Recorded:
    """The recorded end of a call, returned instead of running it."""

    __slots__ = ("row", "value")

    def __init__(self, value: Any, row: Row) -> None:
        self.value = value
        self.row = row


async def find(call: Call) -> Recorded | None:
    """The recorded end of this call, or `None` with its identity claimed for a run."""
    if call.call_key is not None:
        return None  # its gate has already looked
    ctx, runtime = call.ctx, call.runtime
    await _find_place(call)
    again = ctx.attempt > 1 or ctx.reexecutes or call.position_key is not None
    if again and call.spec.effects != "write":
        # It has no row yet, but it may be under way.
        waited: set[str] = set()
        while (twin := runtime.in_flight.twin(call)) is not None and twin not in waited:
            await runtime.in_flight.ended(twin)
            waited.add(twin)
    if again:
        begun, known = await runtime.store.write(_look_up(call, issue_again))
    else:
        begun, known = await runtime.store.read(_look_up(call, look_up))
    if known is not None:
        call.labels, call.denial = known
    if begun.state == "new":
        runtime.in_flight.claim(call, begun.n)
        if call.asked:
            call.earlier = begun.rows  # one question then shows them, too
        return None
    goes_on = begun.state in ("again", "unfinished")
    found = None if goes_on else await settle(call, begun)
    if found is None and not goes_on and call.asked:
        await renew(call)
    elif found is None:
        # It is looked at again when it begins: a doubt may be settled by then.
        call.call_key, call.n, call.matched = begun.call_key, begun.n, True
        call.left = begun.row
    return found


async def _find_place(call: Call) -> None:
    """Where the call was made before, if its framework has kept no more of it than its id."""
    if call.ctx.reexecutes and call.ctx.call_id and call.position_key is None:
        intent = call.intent()
        call.found_at(await call.runtime.store.read(lambda tx: place_again(tx, intent)))


_Known = tuple[tuple[str, ...], Row | None]
"""Labels, and an earlier refusal of the call."""


def _look_up(
    call: Call, find_in: Callable[[Transaction, Intent], Begun]
) -> Operation[tuple[Begun, _Known | None]]:
    """Identity and, for a call that a person will see, what is asked: all in one snapshot."""
    intent = call.intent()
    wanted = call.asked and call.labels is None and call.decision is None
    facts = call.before_asking() if wanted and call.ctx.approval is None else None

    def op(tx: Transaction) -> tuple[Begun, _Known | None]:
        begun = find_in(tx, intent)
        if facts is None or begun.state not in ("new", "again"):
            return begun, None
        scopes, same = facts
        denial = UNREAD if same is None else approvals.denied_before(tx, *same)
        return begun, (taint.labels(tx, scopes), denial)

    return op


async def enter(call: Call) -> None:
    """Name the run of the calls that this one's tool makes, and count how often it was entered.

    A tool that is entered again repeats its calls: the outcomes of those that ended are returned.
    """
    store, position = call.runtime.store, call.position_key
    if call.call_key is None:
        # Reads are recorded in the background: without the flush the ordinal would not count
        # them, and the next attempt would name another run.
        await store.flush()
        intent = call.intent()
        begun = await store.read(lambda tx: look_up(tx, intent))
        if call.call_key is None:
            call.runtime.in_flight.claim(call, begun.n if position is None else begun.n or 1)
    if call.entry is None:
        sub_run = sub_run_id(call.key())
        before = await store.read(lambda tx: entries(tx, sub_run))
        call.count_entry(before)


async def renew(call: Call) -> None:
    """Give a call that would add to `call.earlier` an identity of its own to ask under."""
    in_flight = call.runtime.in_flight
    in_flight.release(call)
    call.call_key = call.n = call.labels = None
    call.matched = False
    seen = call.accepted | {row["call_key"] for row in call.earlier}
    intent = dataclasses.replace(call.intent(), accepted=seen)
    begun = await call.runtime.store.read(lambda tx: look_up(tx, intent))
    call.earlier += begun.rows  # one question then shows them, too
    in_flight.claim(call, begun.n)


async def settle(call: Call, begun: Begun) -> Recorded | None:
    """Act on an earlier call: its outcome or error, or `None` with `call.earlier` to ask about."""
    if begun.state == "conflict":
        raise refused(call, begun)
    row = begun.row
    if row is None:
        return None
    if begun.state == "running":
        return await recorded(call, await _ended_here(call, begun.call_key))
    if begun.state == "in-flight":
        raise ToolInFlight(f"{call.spec.name} is under way in another process; wait for it")
    if begun.state == "in-doubt":
        raise doubt(call.spec, row)
    if begun.state == "unknown":
        call.earlier = (row,)
        return None
    return await recorded(call, row)


async def _ended_here(call: Call, call_key: str) -> Row:
    """The row of a call under way in this process, once it has ended."""
    await call.runtime.in_flight.ended(call_key)
    await call.runtime.store.flush()  # the end of a cancelled call is only queued
    row = await call.runtime.store.read(lambda tx: tx.get("calls", call_key))
    if row is None or row["state"] == "open":
        raise ToolInFlight(f"{call.spec.name} is under way; wait for it")
    if row["ending"] == "aborted":
        raise ToolInFlight(f"{call.spec.name} was stopped before it began; call it again")
    if row["ending"] == "unknown":
        raise doubt(call.spec, row)
    return row


def doubt(spec: ToolSpec, row: Row) -> ToolInDoubt:
    """The error for a write with unknown outcome."""
    return ToolInDoubt(
        f"{spec.name} was begun before and its outcome is unknown: it is not repeated; "
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
        if state == "pending" and call.take is not None:
            return ApprovalPending(call.take.record_id)
        return _UNUSABLE.get(state, ApprovalDenied)(f"{name}: {begun.reason}")
    if begun.state == "stopped":
        return ApprovalDenied(f"{name}: {begun.reason}")
    if begun.state == "conflict":
        return CallConflict(
            f"{name}: call_id {call.ctx.call_id!r} names {begun.reason} in run {call.ctx.run_id!r} "
            "already, and the tool or its arguments differ; give each call an id of its own"
        )
    if begun.state == "stale":
        return StaleTurn(f"{name}: {begun.reason}")
    return ToolInFlight(f"{name}: {begun.reason}")


def limit_text(call: Call, limit: str) -> str:
    """The text about a limit for a model."""
    value = getattr(call.limits, limit, None)
    return f"the run has reached its limit {limit}={value}"


async def recorded(call: Call, row: Row) -> Recorded:
    """The outcome of an ended call; raises the error that it ended with."""
    if row["ending"] in ("no-effect", "failed") or row["error_kind"] is not None:
        kind = row["error_kind"] or ToolFailed.kind
        error = _ERRORS.get(kind, ToolError)(row["error_text"] or f"{call.spec.name} failed")
        error.kind = kind  # type: ignore[misc]  # a kind that the tool's author made
        raise error
    kept = await call.runtime.store.read(_payload_of(row["result"]))
    if kept is None:
        raise ToolInDoubt(
            f"{call.spec.name} was done; its result is no longer kept", call_key=row["call_key"]
        )
    tag, _, data = kept.partition(b"\n")
    if tag == b"opaque":
        raise ToolInDoubt(
            f"{call.spec.name} was done; its result could not be kept", call_key=row["call_key"]
        )
    return Recorded(call.spec.result.decode(tag.decode(), data), row)


def _payload_of(id: str | None) -> Any:
    def op(tx: Transaction) -> bytes | None:
        return ledger.payload(tx, id)

    return op
