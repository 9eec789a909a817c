"""Adds time in which nobody could act to the deadlines of approvals."""

from __future__ import annotations

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction

_LIMITS = {"pending": "decide_by", "approved": "use_by"}


def extend(tx: Transaction, where: Row, seconds: float, *, now: float) -> int:
    """Move the deadlines of the open approvals `where`, by `seconds` up to `now`; how many.

    One that was asked for or decided in that time gets what has passed since. What had run out
    before stays so. An entry in the chain says so.
    """
    moved = 0
    for state, name in _LIMITS.items():
        for row in tx.select("approvals", where | {"state": state}):
            since = row["created_at"] if state == "pending" else row["decided_at"]
            added = min(seconds, now - since)
            if row[name] is None or added <= 0:
                continue
            until = row[name] + added
            tx.update("approvals", {"id": row["id"], "state": state}, {name: until})
            if state == "pending":
                waits = {"waits_for": row["id"], "until !=": None}
                tx.update("turn_waits", waits, {"until": until})
            facts = {"approval": row["id"], name: until, "seconds": round(added, 3)}
            ledger.append(tx, row["run_id"], "approval-extended", row["call_key"], facts)
            moved += 1
    return moved
