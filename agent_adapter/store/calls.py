"""Operations on calls: begun, ended and resolved, each in one atomic step.

A call has one identity from its first attempt on: `call_key`, a hash of the run, the tool, the
digest of the arguments as they were given and `n`, the how-manieth such call of the run it is.
`begin_call` finds out whether a call is new or one that was begun before, takes its approval,
reserves its limits and writes its intent: all of it or nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_adapter.core.errors import StoreError
from agent_adapter.core.types import RunLimits
from agent_adapter.store import approvals, ledger, limits
from agent_adapter.store.approvals import Refusal, Take
from agent_adapter.store.base import Operation, Row, Transaction

__all__ = [
    "Begun",
    "Intent",
    "Outcome",
    "Reserve",
    "begin_call",
    "call_key_of",
    "end_call",
    "in_doubt",
    "issue_again",
    "late_outcome",
    "look_up",
    "record_call",
    "resolve",
]

Found = Literal["recorded", "running", "in-flight", "in-doubt", "unknown", "again"]
"""What an identity's row says: ended; under way here; elsewhere; lost; unclear; to be run again."""

_NOT_AN_END = ("cancelled", "approval-pending", "tool-in-flight", "tool-busy")
"""Errors after which a repeatable call is run again, and not answered with them for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One call about to begin; `arguments` is the JSON that the ledger keeps.

    `call_key` and `n` are set where the identity is already bound (an approved record, a call that
    has sub-runs). `accepted` are the keys of earlier writes that a person agreed to add to.
    `approval` are facts for the ledger: who approved, when, in which record.
    """

    run_id: str
    tool: str
    digest: str
    effects: str
    fingerprint: str
    arguments: bytes
    call_key: str | None = None
    n: int | None = None
    tenant: str = ""
    thread_id: str | None = None
    principal: str | None = None
    attempt: int = 1
    reexecutes: bool = False
    call_id: str | None = None
    parent_call_key: str | None = None
    cost: float = 0.0
    once_key: str | None = None
    accepted: frozenset[str] = frozenset()
    approval: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """The limits that hold, and the run over which they are counted."""

    limits: RunLimits
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What `begin_call` found or did.

    `state`: `started` (the intent is written), a `Found` about the earlier call in `row`,
    `repeats` (writes in `rows` are unclear), `diverges` (writes in `rows` were not issued again),
    `refused` (the approval could not be taken), `limit`, `stopped` or `stale`; `reason` says more.
    """

    state: (
        Found
        | Literal["started", "repeats", "diverges", "refused", "limit", "stopped", "stale", "new"]
    )
    call_key: str = ""
    n: int = 0
    row: Row | None = None
    rows: tuple[Row, ...] = ()
    reason: str = ""
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended; `result` is the encoded value under `tag`."""

    call_key: str
    run_id: str
    ending: Literal["ok", "no-effect", "unknown", "aborted", "failed"]
    tag: str = ""
    result: bytes | None = None
    error_kind: str | None = None
    error_text: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def call_key_of(run_id: str, tool: str, digest: str, n: int) -> str:
    """The identity of the nth call of `tool` with these arguments in a run."""
    text = "\x00".join((run_id, tool, digest, str(n)))
    return "call_" + hashlib.sha256(text.encode()).hexdigest()[:40]


def once_key_of(tenant: str, tool: str, once_key: str) -> str:
    """The identity of a write that happens once over all runs."""
    text = "\x00".join(("once", tenant, tool, once_key))
    return "call_" + hashlib.sha256(text.encode()).hexdigest()[:40]


def look_up(tx: Transaction, intent: Intent) -> Begun:
    """What `begin_call` would find, without writing: the earlier call, or the next free `n`."""
    row = _match(tx, intent)
    if row is not None:
        return Begun(state=_found(tx, row), call_key=row["call_key"], n=row["n"], row=row)
    n = _last_n(tx, intent) + 1
    return Begun(state="new", call_key=_key(intent, n), n=n)


def issue_again(tx: Transaction, intent: Intent) -> Begun:
    """`look_up` for a run that is run again: the earlier call that it finds is thereby issued."""
    begun = look_up(tx, intent)
    if begun.row is not None:
        _mark_issued(tx, begun.row, intent)
    return begun


def begin_call(
    tx: Transaction,
    intent: Intent,
    *,
    consume: Take | None = None,
    reserve: Reserve | None = None,
    fence: Operation[str | None] | None = None,
) -> Begun:
    """Begin the call, or say in one value why it does not begin; then nothing was written."""
    stop = _stop(tx, intent, fence)
    if stop is not None:
        return stop
    row = _match(tx, intent)
    if row is not None:
        found = _found(tx, row)
        if found != "again":
            _mark_issued(tx, row, intent)
            return Begun(state=found, call_key=row["call_key"], n=row["n"], row=row)
        n, call_key = row["n"], row["call_key"]
    else:
        last = _last_n(tx, intent)
        earlier = _in_the_way(tx, intent, last)
        if earlier is not None:
            return earlier
        n = intent.n or last + 1
        call_key = _key(intent, n)
    short = _take_and_reserve(tx, intent, call_key, consume, reserve)
    if short is not None:
        return short
    for accepted in intent.accepted:
        tx.update("calls", {"call_key": accepted}, {"last_attempt": intent.attempt})
    _write_intent(tx, intent, call_key, n, row)
    return Begun(state="started", call_key=call_key, n=n)


def end_call(tx: Transaction, outcome: Outcome) -> bool:
    """Record how a call ended; `False` if its row is no longer this process's to end.

    Then the outcome is kept as evidence, and nothing else changes.
    """
    row = tx.get("calls", outcome.call_key)
    if row is None or row["state"] != "open" or row["epoch"] != tx.epoch:
        late_outcome(tx, outcome)
        return False
    facts = _ended(tx, outcome)
    ledger.append(tx, outcome.run_id, "outcome", outcome.call_key, facts)
    if outcome.ending == "aborted":
        limits.release(tx, outcome.call_key)
    else:
        limits.settle(tx, outcome.call_key)
    return True


def record_call(tx: Transaction, intent: Intent, outcome: Outcome) -> None:
    """Record a read or idempotent call that has ended, in one entry."""
    n = intent.n or _last_n(tx, intent) + 1
    call_key = _key(intent, n)
    row = tx.get("calls", call_key)
    if row is None:
        tx.insert("calls", _new_row(tx, intent, call_key, n))
    else:
        _mark_issued(tx, row, intent)
    facts = _intent_facts(tx, intent, call_key)
    done = Outcome(
        call_key=call_key,
        run_id=intent.run_id,
        ending=outcome.ending,
        tag=outcome.tag,
        result=outcome.result,
        error_kind=outcome.error_kind,
        error_text=outcome.error_text,
        facts=outcome.facts,
    )
    ledger.append(tx, intent.run_id, "call", call_key, facts | _ended(tx, done))


def late_outcome(tx: Transaction, outcome: Outcome) -> None:
    """Keep as evidence what a call did after it was given up; it changes no state."""
    facts: dict[str, Any] = {"ending": outcome.ending, "error": outcome.error_kind}
    if outcome.result is not None:
        id = f"{outcome.call_key}.late"
        facts["result"] = ledger.put_payload(tx, id, outcome.run_id, outcome.result)
    ledger.append(tx, outcome.run_id, "late-outcome", outcome.call_key, facts | outcome.facts)


def in_doubt(tx: Transaction, tenant: str | None = None) -> list[Row]:
    """Every write that a person has to look at: begun by a dead process, or ended `unknown`."""
    of_tenant = {} if tenant is None else {"tenant": tenant}
    lost = tx.select(
        "calls", of_tenant | {"state": "open", "effects": "write"}, order_by="started_at"
    )
    unknown = tx.select("calls", of_tenant | {"ending": "unknown"}, order_by="finished_at")
    return [row for row in lost if not tx.is_live(row["epoch"])] + unknown


def resolve(
    tx: Transaction,
    call_key: str,
    *,
    reviewer: str,
    happened: bool,
    result: tuple[str, bytes] | None = None,
    reason: str | None = None,
) -> Row | Refusal:
    """A person's word on a write in doubt: it happened (with this result), or it did not."""
    row = tx.get("calls", call_key)
    if row is None:
        return Refusal(reason=f"no call {call_key}")
    open_elsewhere = row["state"] == "open" and tx.is_live(row["epoch"])
    if open_elsewhere or (row["state"] == "done" and row["ending"] != "unknown"):
        state = "under way" if open_elsewhere else row["ending"]
        return Refusal(reason=f"call {call_key} is not in doubt: it is {state}", state=state)
    ending = "ok" if happened else "aborted"
    values: Row = {"state": "done", "ending": ending, "finished_at": tx.now, "epoch": tx.epoch}
    values |= {"error_kind": None, "error_text": None}
    facts: dict[str, Any] = {"ending": ending, "reviewer": reviewer, "reason": reason}
    if result is not None:
        values["result"] = f"{call_key}.result"
        data = _tagged(*result)
        facts["result"] = ledger.put_payload(tx, values["result"], row["run_id"], data)
    tx.update("calls", {"call_key": call_key}, values)
    ledger.append(tx, row["run_id"], "resolved", call_key, facts)
    limits.settle(tx, call_key)
    return row | values


def _stop(tx: Transaction, intent: Intent, fence: Operation[str | None] | None) -> Begun | None:
    stale = fence(tx) if fence is not None else None
    if stale is not None:
        return Begun(state="stale", reason=stale)
    if intent.effects == "write":
        stopped = tx.get("meta", "writes-stopped")
        if stopped is not None:
            return Begun(state="stopped", reason=stopped["value"] or "")
    return None


def _match(tx: Transaction, intent: Intent) -> Row | None:
    """The earlier call that this one is, if it is one and nobody agreed to go past it."""
    row = _identified(tx, intent)
    return None if row is not None and row["call_key"] in intent.accepted else row


def _identified(tx: Transaction, intent: Intent) -> Row | None:
    if intent.once_key is not None or intent.call_key is not None:
        row = tx.get("calls", _key(intent, intent.n or 1))
        return row if row is not None and row["tenant"] == intent.tenant else None
    same: Row = {"run_id": intent.run_id, "tool": intent.tool, "digest": intent.digest}
    same |= {"tenant": intent.tenant, "principal": intent.principal}
    if intent.attempt > 1:
        issued = same | {"last_attempt <": intent.attempt}
        return _by_native_id(tx, intent, issued) or _first(tx, issued)
    if intent.reexecutes:
        return _by_native_id(tx, intent, same)
    return None


def _by_native_id(tx: Transaction, intent: Intent, where: Row) -> Row | None:
    return _first(tx, where | {"call_id": intent.call_id}) if intent.call_id is not None else None


def _first(tx: Transaction, where: Row) -> Row | None:
    rows = tx.select("calls", where, order_by="n", limit=1)
    return rows[0] if rows else None


def _found(tx: Transaction, row: Row) -> Found:
    write = row["effects"] == "write"
    if row["state"] == "open":
        if row["epoch"] == tx.epoch:
            return "running"
        if tx.is_live(row["epoch"]):
            return "in-flight"
        return "in-doubt" if write else "again"
    if row["ending"] == "unknown":
        return "unknown"
    left = row["ending"] == "failed" and row["error_kind"] in _NOT_AN_END
    return "again" if left or row["ending"] == "aborted" else "recorded"


def _mark_issued(tx: Transaction, row: Row, intent: Intent) -> None:
    if row["last_attempt"] < intent.attempt:
        tx.update("calls", {"call_key": row["call_key"]}, {"last_attempt": intent.attempt})


def _in_the_way(tx: Transaction, intent: Intent, last: int) -> Begun | None:
    """Earlier writes that a person must see before this one; `last` counts those like it."""
    if intent.effects != "write":
        return None
    return (_repeats(tx, intent) if last else None) or _diverges(tx, intent)


def _repeats(tx: Transaction, intent: Intent) -> Begun | None:
    """Earlier writes of the same tool and arguments in the run whose effect nobody knows."""
    same = {"run_id": intent.run_id, "tool": intent.tool, "digest": intent.digest}
    rows = tx.select("calls", same | {"ending": "unknown"}, limit=20)
    rows += [
        row
        for row in tx.select("calls", same | {"state": "open"}, limit=20)
        if not tx.is_live(row["epoch"])
    ]
    unclear = tuple(row for row in rows if row["call_key"] not in intent.accepted)
    return Begun(state="repeats", rows=unclear) if unclear else None


def _diverges(tx: Transaction, intent: Intent) -> Begun | None:
    """Writes of earlier attempts that this attempt has not issued again before a new one."""
    if intent.attempt == 1:
        return None
    left: Row = {"run_id": intent.run_id, "effects": "write", "last_attempt <": intent.attempt}
    rows = tx.select("calls", left | {"tenant": intent.tenant}, order_by="started_at", limit=50)
    missing = tuple(
        row
        for row in rows
        if row["ending"] not in ("aborted", "no-effect") and row["call_key"] not in intent.accepted
    )
    return Begun(state="diverges", rows=missing) if missing else None


def _last_n(tx: Transaction, intent: Intent) -> int:
    if intent.once_key is not None:
        return 0
    same = {"run_id": intent.run_id, "tool": intent.tool, "digest": intent.digest}
    rows = tx.select("calls", same, order_by="n", descending=True, limit=1)
    return rows[0]["n"] if rows else 0


def _key(intent: Intent, n: int) -> str:
    if intent.once_key is not None:
        return once_key_of(intent.tenant, intent.tool, intent.once_key)
    return intent.call_key or call_key_of(intent.run_id, intent.tool, intent.digest, n)


def _take_and_reserve(
    tx: Transaction, intent: Intent, call_key: str, consume: Take | None, reserve: Reserve | None
) -> Begun | None:
    if reserve is not None:
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
    if row is None:
        if not tx.insert("calls", _new_row(tx, intent, call_key, n)):
            raise StoreError(f"call {call_key} was begun before under an identity of its own")
    else:
        again: Row = {"state": "open", "ending": None, "epoch": tx.epoch, "finished_at": None}
        again |= {"last_attempt": intent.attempt, "call_id": intent.call_id}
        tx.update("calls", {"call_key": call_key}, again)
    ledger.append(tx, intent.run_id, "intent", call_key, _intent_facts(tx, intent, call_key))


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
        "epoch": tx.epoch,
        "started_at": tx.now,
        "finished_at": None,
        "arguments": f"{call_key}.arguments",
        "result": None,
        "cost": intent.cost,
        "once_key": intent.once_key,
        "record_id": (intent.approval or {}).get("id"),
    }


def _intent_facts(tx: Transaction, intent: Intent, call_key: str) -> dict[str, Any]:
    kept = ledger.put_payload(tx, f"{call_key}.arguments", intent.run_id, intent.arguments)
    facts: dict[str, Any] = {
        "tool": intent.tool,
        "fingerprint": intent.fingerprint,
        "effects": intent.effects,
        "arguments": kept,
        "attempt": intent.attempt,
        "call_id": intent.call_id,
        "epoch": tx.epoch,
    }
    optional = {
        "principal": intent.principal,
        "tenant": intent.tenant,
        "parent": intent.parent_call_key,
        "approval": intent.approval,
        "cost": intent.cost,
        "accepted": sorted(intent.accepted),
    }
    return facts | {name: value for name, value in optional.items() if value}


def _ended(tx: Transaction, outcome: Outcome) -> dict[str, Any]:
    values: Row = {
        "state": "done",
        "ending": outcome.ending,
        "error_kind": outcome.error_kind,
        "error_text": outcome.error_text,
        "finished_at": tx.now,
    }
    facts: dict[str, Any] = {"ending": outcome.ending}
    if outcome.error_kind is not None:
        facts["error"] = outcome.error_kind
    if outcome.result is not None:
        values["result"] = f"{outcome.call_key}.result"
        data = _tagged(outcome.tag, outcome.result)
        facts["result"] = ledger.put_payload(tx, values["result"], outcome.run_id, data)
    tx.update("calls", {"call_key": outcome.call_key}, values)
    return facts | outcome.facts


def _tagged(tag: str, data: bytes) -> bytes:
    return tag.encode() + b"\n" + data
