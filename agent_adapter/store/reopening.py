"""Operations that put a record back before its reviewers: what they said no longer covers the call.

A label that the run got after a vote voids the vote; so does an edit that the tool refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from agent_adapter.store import ledger, timekeeping
from agent_adapter.store.base import Row, Transaction

_DECIDE_WITHIN = 3600.0
"""The seconds to decide for records that do not say them."""


_OF_A_DECISION = ("reviewer", "reason", "decided_at", "use_by", "signature", "released_at")


def with_labels(tx: Transaction, row: Row, labels: Iterable[str]) -> Row:
    """The open record with these labels; votes given without one of them are void."""
    kept = json.loads(row["request"])
    known = set(kept.get("taint", ()))
    if known.issuperset(labels):
        return row
    kept["taint"] = sorted(known.union(labels))
    request = json.dumps(kept, separators=(",", ":"))
    new = ", ".join(sorted(set(labels) - known))
    if row["state"] == "approved":
        return _reopened(tx, row, f"the run has read {new} since it was approved", request)
    tx.delete("votes", {"approval_id": row["id"]})
    tx.update("approvals", {"id": row["id"]}, {"request": request})
    facts = {"approval": row["id"], "labels": kept["taint"]}
    ledger.append(tx, row["run_id"], "approval-labelled", row["call_key"], facts)
    return row | {"request": request}


def reopen(tx: Transaction, id: str, why: str) -> Row | None:
    """Ask again about an approved call whose edit cannot run; the edit is dropped."""
    row = tx.get("approvals", id)
    if row is None or row["state"] != "approved":
        return row
    kept = json.loads(row["request"])
    kept["reason"] = f"{kept.get('reason', '')}; an edit was refused: {why}".removeprefix("; ")
    request = json.dumps(kept, separators=(",", ":"))
    return _reopened(tx, row, why, request, edited=None)


def _reopened(tx: Transaction, row: Row, why: str, request: str, **more: None) -> Row:
    within = json.loads(request).get("decide_within", _DECIDE_WITHIN)
    void = dict.fromkeys(_OF_A_DECISION)
    values: Row = {**void, **more, "state": "pending", "request": request}
    values["decide_by"] = timekeeping.now(tx) + within
    tx.delete("votes", {"approval_id": row["id"]})
    tx.update("approvals", {"id": row["id"], "state": "approved"}, values)
    facts = {"approval": row["id"], "why": why}
    ledger.append(tx, row["run_id"], "approval-reopened", row["call_key"], facts)
    return row | values
