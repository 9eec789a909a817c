"""The votes on a record that needs several reviewers: of people, each on what will run."""

from __future__ import annotations

from agent_adapter.store import people
from agent_adapter.store.base import Row, Transaction


def count(tx: Transaction, row: Row, reviewer: str, reason: str | None, bound: str) -> int:
    """Count this reviewer's yes to `bound`; how many people said it. It replaces theirs before."""
    whose, who = {"approval_id": row["id"]}, people.person_of(tx, reviewer)
    for vote in tx.select("votes", whose):
        if people.person_of(tx, vote["reviewer"]) == who:
            tx.delete("votes", whose | {"reviewer": vote["reviewer"]})
    vote = whose | {"reviewer": reviewer, "verdict": "approved"}
    tx.insert("votes", vote | {"digest": bound, "reason": reason, "at": tx.now})
    return len({people.person_of(tx, vote["reviewer"]) for vote in _given(tx, row, bound)})


def reviewers(tx: Transaction, row: Row, bound: str) -> str:
    """The names of everybody who said yes to `bound`, in the order of their votes."""
    return ", ".join(vote["reviewer"] for vote in _given(tx, row, bound))


def _given(tx: Transaction, row: Row, bound: str) -> list[Row]:
    same = {"approval_id": row["id"], "verdict": "approved", "digest": bound}
    return tx.select("votes", same, order_by="at")
