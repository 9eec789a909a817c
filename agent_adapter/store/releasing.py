"""The seconds after a decision in which it can be undone: until then nothing goes by it.

A decision of the console has a `released_at`. Programs see its record as one that still waits, and
`approvals.take` refuses it. Whoever decided may take it back until then; nobody has to do anything
for it to take effect.
"""

from __future__ import annotations

from agent_adapter.core.inert import short
from agent_adapter.store import ledger, people, timekeeping
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.refusal import Refusal

MAX_SECONDS = 60.0
"""The longest time in which a decision can be undone: calls wait for it."""

DECIDED = ("approved", "denied", "answered")
"""The states that a reviewer's decision gives a record."""

_OF_A_DECISION = "reviewer reason decided_at use_by signature released_at answer"


def seconds_held(tx: Transaction, row: Row) -> float:
    """How long the record's decision can still be undone; 0 for one that counts, or for none."""
    until = row["released_at"]
    if until is None or row["state"] not in DECIDED:
        return 0.0
    # Not above the longest time, however far the clock was set back since.
    return float(min(MAX_SECONDS, max(0.0, until - timekeeping.now(tx))))


def undo(tx: Transaction, row: Row, *, by: str) -> Row | Refusal:
    """Take back the decision of `by`: the record waits as before it; the updated record."""
    if row["state"] not in DECIDED:
        return Refusal(
            reason=f"approval {row['id']} is {row['state']}: there is no decision to undo",
            state=row["state"],
        )
    if not seconds_held(tx, row):
        way = "; withdraw it instead, while no call has used it" if row["use_by"] else ""
        return Refusal(
            reason=f"the decision on approval {row['id']} is in force and cannot be undone{way}",
            state=row["state"],
        )
    if not _is_by(tx, row, by):
        return Refusal(
            reason=f"approval {row['id']} was decided by {short(row['reviewer'] or 'nobody')}, and"
            f" {short(by)} cannot undo that",
            state=row["state"],
        )
    values: Row = dict.fromkeys(_OF_A_DECISION.split()) | {"state": "pending"}
    if row["votes_needed"] == 1:
        values["edited"] = None  # with several votes an edit is an earlier reviewer's
    _drop_vote(tx, row, by)
    tx.update("approvals", {"id": row["id"], "state": row["state"]}, values)
    facts = {"approval": row["id"], "from": row["state"], "reviewer": by}
    ledger.append(tx, row["run_id"], "approval-undone", row["call_key"], facts)
    return row | values


def _is_by(tx: Transaction, row: Row, by: str) -> bool:
    who = people.person_of(tx, by)
    votes = tx.select("votes", {"approval_id": row["id"]}) if row["votes_needed"] > 1 else []
    names = [row["reviewer"], *(vote["reviewer"] for vote in votes)]
    return any(name is not None and people.person_of(tx, name) == who for name in names)


def _drop_vote(tx: Transaction, row: Row, by: str) -> None:
    who, whose = people.person_of(tx, by), {"approval_id": row["id"]}
    for vote in tx.select("votes", whose):
        if people.person_of(tx, vote["reviewer"]) == who:
            tx.delete("votes", whose | {"reviewer": vote["reviewer"]})
