"""Operations on calls: begun and ended, each in one atomic step.

`begin_call` finds out whether a call is new or one that was begun before, takes its approval,
reserves its limits and writes its intent: all of it or nothing.
"""

from __future__ import annotations

from typing import Any

from agent_adapter.core.errors import StoreError
from agent_adapter.store import approvals, keyed, ledger, limits, switch, withdrawing
from agent_adapter.store.approvals import Take
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.earlier import found_as
from agent_adapter.store.identity import (
    in_the_way,
    key_of,
    last_n,
    mark_issued,
    match,
    settled,
    unclear_before,
)
from agent_adapter.store.intents import Begun, Intent, Outcome, Reserve
from agent_adapter.store.remembered import SUSPENDED, UNCLEAR

__all__ = ["begin_call", "end_call", "late_outcome", "record_call", "tagged_result"]


def begin_call(
    tx: Transaction,
    intent: Intent,
    *,
    consume: Take | None = None,
    reserve: Reserve | None = None,
) -> Begun:
    """Begin the call, or return why it does not begin; then nothing was written."""
    stop = _stop(tx, intent)
    if stop is not None:
        return stop
    row = settled(tx, intent) if intent.doubts else None
    if row is not None and consume is not None:
        _withdraw(tx, consume)
    row = row or match(tx, intent)
    if row is not None:
        found = found_as(tx, row, intent)
        if found != "again":
            mark_issued(tx, row, intent)
            return Begun(state=found, call_key=row["call_key"], n=row["n"], row=row)
        earlier = unclear_before(tx, intent, row)
        if earlier is not None:
            return earlier
        n, call_key = row["n"], row["call_key"]
    else:
        last = last_n(tx, intent)
        earlier = in_the_way(tx, intent, last)
        if earlier is not None:
            return earlier
        n = intent.n or last + 1
        call_key = key_of(intent, n)
        if call_key in intent.accepted:
            # A once-key has one row: the repeat that a person agreed to takes it over.
            row = tx.get("calls", call_key)
    short = _take_and_reserve(tx, intent, call_key, consume, reserve)
    if short is not None:
        return short
    for accepted in intent.accepted:
        tx.update("calls", {"call_key": accepted}, {"last_attempt": intent.attempt})
    _write_intent(tx, intent, call_key, n, row)
    return Begun(state="started", call_key=call_key, n=n, entry=1 if row is None else 2)


def end_call(tx: Transaction, outcome: Outcome) -> bool:
    """Record how a call ended; `False` if this process no longer owns its row.

    Then the outcome is kept as evidence, and nothing else changes.
    """
    mine = {"call_key": outcome.call_key, "state": "open", "owner_id": tx.owner_id}
    if not tx.update("calls", mine, _ended(tx, outcome, outcome.call_key)):
        late_outcome(tx, outcome)
        return False
    facts = _outcome_facts(tx, outcome, outcome.call_key, outcome.run_id)
    ledger.append(tx, outcome.run_id, "outcome", outcome.call_key, facts)
    if not outcome.reserved:
        return True
    if outcome.ending in ("aborted", "suspended"):
        limits.release(tx, outcome.call_key)
    else:
        limits.settle(tx, outcome.call_key)
    return True


def record_call(tx: Transaction, intent: Intent, outcome: Outcome, *, above: int = 0) -> None:
    """Record a read or idempotent call that has ended, in one entry.

    A call without a number of its own gets the next one; those up to `above` are held by others.
    """
    n = intent.n or max(last_n(tx, intent), above) + 1
    call_key = key_of(intent, n)
    row = _new_row(tx, intent, call_key, n)
    row |= _ended(tx, outcome, call_key)
    if not tx.insert("calls", row):
        issued = {"last_attempt": intent.attempt}
        tx.update("calls", {"call_key": call_key, "last_attempt <": intent.attempt}, issued)
        # One that was left unfinished is gone on with in the run of whoever asks again.
        ended = _ended(tx, outcome, call_key) | {"run_id": intent.run_id}
        tx.update("calls", {"call_key": call_key}, ended)
    facts = _intent_facts(tx, intent, call_key)
    facts |= _outcome_facts(tx, outcome, call_key, intent.run_id)
    ledger.append(tx, intent.run_id, "call", call_key, facts)


def late_outcome(tx: Transaction, outcome: Outcome) -> None:
    """Record the late outcome of a call that was given up; it changes no state."""
    facts: dict[str, Any] = {"ending": outcome.ending, "error": outcome.error_kind}
    if outcome.result is not None:
        id = f"{outcome.call_key}.late"
        facts["result"] = ledger.put_payload(tx, id, outcome.run_id, outcome.result)
    ledger.append(tx, outcome.run_id, "late-outcome", outcome.call_key, facts | outcome.facts)


def _stop(tx: Transaction, intent: Intent) -> Begun | None:
    # Here and not before: between a check and the intent another attempt could begin.
    stale = intent.fence(tx) if intent.fence is not None else None
    if stale is not None:
        return Begun(state="stale", reason=stale)
    write = intent.effects == "write"
    why = switch.halted(tx, run_id=intent.run_id, root_run_id=intent.root_run_id, write=write)
    if why is not None:
        return Begun(state="stopped", reason=why)
    other = keyed.conflict(tx, intent) if intent.keyed else None
    return None if other is None else Begun(state="conflict", reason=other)


def _withdraw(tx: Transaction, use: Take) -> None:
    why = "the call that it would repeat was done"
    withdrawing.withdraw(tx, use.record_id, reason=why, tenant=use.tenant)


def _take_and_reserve(
    tx: Transaction, intent: Intent, call_key: str, consume: Take | None, reserve: Reserve | None
) -> Begun | None:
    # A call that is run again holds what it reserved when it first began.
    if reserve is not None and tx.get("reservations", call_key) is None:
        over = limits.exceeded(tx, reserve.run_id, intent.tool, intent.cost, reserve.limits)
        if over is not None:
            return Begun(state="limit", call_key=call_key, reason=over)
    if consume is not None:
        refusal = approvals.take(tx, consume)
        if refusal is not None:
            return Begun(state="refused", reason=refusal.reason, refusal=refusal)
    if reserve is not None:
        limits.reserve(tx, call_key, reserve.run_id, intent.tool, intent.cost)
    return None


def _write_intent(tx: Transaction, intent: Intent, call_key: str, n: int, row: Row | None) -> None:
    facts = _intent_facts(tx, intent, call_key)
    if row is None:
        if not tx.insert("calls", _new_row(tx, intent, call_key, n)):
            raise StoreError(f"call {call_key} was begun before under an identity of its own")
    else:
        again = dict.fromkeys(("ending", "finished_at", "error_kind", "error_text", "result"))
        again |= {"state": "open", "owner_id": tx.owner_id, "run_id": intent.run_id}
        again |= {"last_attempt": intent.attempt, "call_id": intent.call_id}
        again |= {"place": intent.place or row["place"]}
        tx.update("calls", {"call_key": call_key}, again)
    ledger.append(tx, intent.run_id, "intent", call_key, facts)


def _new_row(tx: Transaction, intent: Intent, call_key: str, n: int) -> Row:
    return {
        "call_key": call_key,
        "tenant": intent.tenant,
        "run_id": intent.run_id,
        "tool": intent.tool,
        "digest": intent.digest,
        "n": n,
        "thread_id": intent.thread_id,
        "principal": intent.principal,
        "attempt": intent.attempt,
        "last_attempt": intent.attempt,
        "call_id": intent.call_id,
        "parent_call_key": intent.parent_call_key,
        "effects": intent.effects,
        "fingerprint": intent.fingerprint,
        "state": "open",
        "ending": None,
        "error_kind": None,
        "error_text": None,
        "owner_id": tx.owner_id,
        "started_at": tx.now,
        "finished_at": None,
        "arguments": f"{call_key}.arguments",
        "result": None,
        "cost": intent.cost,
        "once_key": intent.once_key,
        "record_id": None if intent.approval is None else intent.approval.get("id"),
        "place": intent.place,
        "conversation": intent.conversation,
        "asker": intent.asker,
        "replaces": _replaced(tx, intent) if intent.accepted else None,
    }


def _replaced(tx: Transaction, intent: Intent) -> str | None:
    """The unclear call of the same run that a person agreed to repeat by this one."""
    rows = [row for key in sorted(intent.accepted) if (row := tx.get("calls", key)) is not None]
    same = (intent.run_id, intent.tool, intent.digest)
    equal = [row for row in rows if (row["run_id"], row["tool"], row["digest"]) == same]
    return min(equal, key=lambda row: row["n"])["call_key"] if equal else None


def _intent_facts(tx: Transaction, intent: Intent, call_key: str) -> dict[str, Any]:
    optional = (
        ("principal", intent.principal),
        ("tenant", intent.tenant),
        ("run_name", intent.run_name),
        ("parent", intent.parent_call_key),
        ("approval", intent.approval),
        ("cost", intent.cost),
        ("accepted", sorted(intent.accepted)),
    )
    given = {name: value for name, value in optional if value}
    kept = ledger.put_payload(tx, f"{call_key}.arguments", intent.run_id, intent.arguments)
    return {
        "tool": intent.tool,
        "fingerprint": intent.fingerprint,
        "effects": intent.effects,
        "arguments": kept,
        "attempt": intent.attempt,
        "call_id": intent.call_id,
        "owner_id": tx.owner_id,
        **given,
    }


def _ended(tx: Transaction, outcome: Outcome, call_key: str) -> Row:
    if outcome.ending == "unknown":
        tx.memo.pop(UNCLEAR, None)
    elif outcome.ending == "suspended":
        tx.memo.pop(SUSPENDED, None)
    values: Row = {
        "state": "done",
        "ending": outcome.ending,
        "error_kind": outcome.error_kind,
        "error_text": outcome.error_text,
        "finished_at": tx.now,
    }
    if outcome.result is not None:
        values["result"] = f"{call_key}.result"
    return values


def _outcome_facts(tx: Transaction, outcome: Outcome, call_key: str, run_id: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"ending": outcome.ending}
    if outcome.error_kind is not None:
        facts["error"] = outcome.error_kind
    if outcome.result is not None:
        data = tagged_result(outcome.tag, outcome.result)
        facts["result"] = ledger.put_payload(tx, f"{call_key}.result", run_id, data)
    facts |= outcome.facts
    return facts


def tagged_result(tag: str, data: bytes) -> bytes:
    """An encoded result as it is kept: its tag, a line end, its bytes."""
    return tag.encode() + b"\n" + data
