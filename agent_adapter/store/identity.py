"""Tells whether a call is new or was begun before.

A call has one identity from its first attempt on: `call_key`, a hash of the run, the tool, the
digest of the arguments as given, and `n`, its ordinal among equal calls of the run.
"""

from __future__ import annotations

import hashlib

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.intents import Begun, Found, Intent

__all__ = [
    "call_key_of",
    "found_as",
    "in_the_way",
    "issue_again",
    "key_of",
    "last_n",
    "look_up",
    "mark_issued",
    "match",
    "once_key_of",
]

_NOT_AN_END = ("cancelled", "approval-pending", "tool-in-flight", "tool-busy")
"""Errors after which a repeatable call is run again, instead of being answered with them."""


def call_key_of(run_id: str, tool: str, digest: str, n: int) -> str:
    """The identity of the nth call of `tool` with these arguments in a run."""
    text = "\x00".join((run_id, tool, digest, str(n)))
    return "call_" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:40]


def once_key_of(tenant: str, tool: str, once_key: str) -> str:
    """The identity of a write that happens once over all runs."""
    text = "\x00".join(("once", tenant, tool, once_key))
    return "call_" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:40]


def look_up(tx: Transaction, intent: Intent) -> Begun:
    """What `begin_call` would find, without writing: the earlier call, or the next free ordinal.

    With the latter, `rows` are the earlier writes that a person must see first.
    """
    row = match(tx, intent)
    if row is not None:
        return Begun(state=found_as(tx, row), call_key=row["call_key"], n=row["n"], row=row)
    last = last_n(tx, intent)
    earlier = in_the_way(tx, intent, last)
    rows = () if earlier is None else earlier.rows
    return Begun(state="new", call_key=key_of(intent, last + 1), n=last + 1, rows=rows)


def issue_again(tx: Transaction, intent: Intent) -> Begun:
    """`look_up` for a run that is run again: the earlier call that it finds is thereby issued."""
    begun = look_up(tx, intent)
    if begun.row is not None:
        mark_issued(tx, begun.row, intent)
    return begun


def match(tx: Transaction, intent: Intent) -> Row | None:
    """The earlier call that this one is, if it is one and nobody agreed to go past it."""
    row = _identified(tx, intent)
    return None if row is not None and row["call_key"] in intent.accepted else row


def _identified(tx: Transaction, intent: Intent) -> Row | None:
    if intent.once_key is not None or intent.call_key is not None:
        row = tx.get("calls", key_of(intent, intent.n or 1))
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


def found_as(tx: Transaction, row: Row) -> Found:
    """What the row of an earlier call means for the same call."""
    write = row["effects"] == "write"
    if row["state"] == "open":
        if row["owner_id"] == tx.owner_id:
            return "running"
        if tx.is_live(row["owner_id"]):
            return "in-flight"
        return "in-doubt" if write else "again"
    if row["ending"] == "unknown":
        return "unknown"
    left = row["ending"] == "failed" and row["error_kind"] in _NOT_AN_END
    return "again" if left or row["ending"] == "aborted" else "recorded"


def mark_issued(tx: Transaction, row: Row, intent: Intent) -> None:
    """Remember that this attempt has issued the earlier call."""
    if row["last_attempt"] < intent.attempt:
        tx.update("calls", {"call_key": row["call_key"]}, {"last_attempt": intent.attempt})
        facts = {"attempt": intent.attempt}
        ledger.append(tx, row["run_id"], "issued-again", row["call_key"], facts)


def in_the_way(tx: Transaction, intent: Intent, last: int) -> Begun | None:
    """Earlier writes that a person must see before this one; `last` counts those like it."""
    if intent.effects != "write":
        return None
    return (_repeats(tx, intent) if last else None) or _diverges(tx, intent)


def _repeats(tx: Transaction, intent: Intent) -> Begun | None:
    """Earlier writes of the same tool and arguments in the run with unknown outcome."""
    same = {"run_id": intent.run_id, "tool": intent.tool, "digest": intent.digest}
    rows = tx.select("calls", same | {"ending": "unknown"}, limit=20)
    rows += [
        row
        for row in tx.select("calls", same | {"state": "open"}, limit=20)
        if not tx.is_live(row["owner_id"])
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


def last_n(tx: Transaction, intent: Intent) -> int:
    """How many such calls the run has begun; 0 where a key of its own makes the call unique."""
    if intent.once_key is not None:
        return 0
    same = {"run_id": intent.run_id, "tool": intent.tool, "digest": intent.digest}
    rows = tx.select("calls", same, order_by="n", descending=True, limit=1)
    return rows[0]["n"] if rows else 0


def key_of(intent: Intent, n: int) -> str:
    """The identity under which the intent is written as the nth such call."""
    if intent.once_key is not None:
        return once_key_of(intent.tenant, intent.tool, intent.once_key)
    return intent.call_key or call_key_of(intent.run_id, intent.tool, intent.digest, n)
