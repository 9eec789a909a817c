"""Operations that take questions back: a question lives as long as whoever asked it.

A withdrawal by a person sticks for the tool and the arguments in the run, as a denial does. One
that follows from the end of a run, a turn or a channel has no reviewer, and keeps nobody from
asking again.
"""

from __future__ import annotations

from agent_adapter.core.inert import short
from agent_adapter.store import ledger, waits
from agent_adapter.store.approvals import Refusal, expire, get
from agent_adapter.store.base import Row, Transaction

_OPEN = ("pending", "approved")


def withdraw(
    tx: Transaction, id: str, *, reason: str, by: str | None = None, tenant: str = ""
) -> Row | Refusal:
    """Take back one question, or an approval that no call has used; the updated record."""
    row = get(tx, id, tenant)
    if row is None:
        return Refusal(reason=f"no approval {short(id)}")
    row = expire(tx, row)
    if row["state"] not in _OPEN:
        return Refusal(
            reason=f"approval {id} is already {row['state']}: only an open one can be withdrawn",
            state=row["state"],
        )
    return _withdrawn(tx, row, reason, by)


def withdraw_all(tx: Transaction, where: Row, *, reason: str, by: str | None = None) -> list[str]:
    """Take back every open question that fits `where`; their ids, oldest first."""
    found = tx.select("approvals", where | {"state in": _OPEN}, order_by="created_at")
    open_rows = (row for each in found if (row := expire(tx, each))["state"] in _OPEN)
    return [_withdrawn(tx, row, reason, by)["id"] for row in open_rows]


def withdraw_run(tx: Transaction, run_id: str, *, reason: str, by: str | None = None) -> list[str]:
    """Take back the open questions of a run, and of the calls that its tools make."""
    ids = withdraw_all(tx, {"run_id": run_id}, reason=reason, by=by)
    return ids + withdraw_all(tx, {"root_run_id": run_id}, reason=reason, by=by)


def withdraw_waits(tx: Transaction, turn_id: str, reason: str) -> None:
    """Take back the questions that a parked turn waits for."""
    for row in tx.select("turn_waits", {"turn_id": turn_id}):
        record = tx.get("approvals", row["waits_for"])
        if record is not None:
            withdraw(tx, record["id"], reason=reason, tenant=record["tenant"])


def _withdrawn(tx: Transaction, row: Row, reason: str, by: str | None) -> Row:
    values: Row = {"state": "withdrawn", "reason": reason, "reviewer": by, "decided_at": tx.now}
    tx.update("approvals", {"id": row["id"], "state": row["state"]}, values)
    waits.wake(tx, row["id"])
    facts = {"approval": row["id"], "from": row["state"], "reviewer": by, "reason": reason}
    ledger.append(tx, row["run_id"], "approval-withdrawn", row["call_key"], facts)
    return row | values
