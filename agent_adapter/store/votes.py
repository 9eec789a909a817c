"""The votes on a record that needs several reviewers: people are counted, not log-ins."""

from __future__ import annotations

from agent_adapter.store import people
from agent_adapter.store.base import Row, Transaction


def count(tx: Transaction, row: Row, reviewer: str, reason: str | None, edited: str | None) -> int:
    """Count this reviewer's yes; how many people said it. An edit voids those given before it."""
    whose, who = {"approval_id": row["id"]}, people.person_of(tx, reviewer)
    if edited is not None:
        tx.delete("votes", whose)
    for vote in tx.select("votes", whose):
        if people.person_of(tx, vote["reviewer"]) == who:
            tx.delete("votes", whose | {"reviewer": vote["reviewer"]})
    vote = whose | {"reviewer": reviewer, "verdict": "approved"}
    tx.insert("votes", vote | {"digest": row["digest"], "reason": reason, "at": tx.now})
    given = tx.select("votes", whose | {"verdict": "approved"})
    return len({people.person_of(tx, vote["reviewer"]) for vote in given})


def reviewers(tx: Transaction, row: Row, last: str) -> str:
    """The names of everybody who said yes, the last one included."""
    votes = tx.select("votes", {"approval_id": row["id"]}, order_by="at")
    return ", ".join(dict.fromkeys([*(vote["reviewer"] for vote in votes), last]))
