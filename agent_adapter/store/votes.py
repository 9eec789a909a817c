"""The votes on a record that needs several reviewers."""

from __future__ import annotations

from agent_adapter.store.base import Row, Transaction


def count(tx: Transaction, row: Row, reviewer: str, reason: str | None, edited: str | None) -> int:
    """Count this reviewer's yes; how many there are. An edit voids those given before it."""
    if edited is not None:
        tx.delete("votes", {"approval_id": row["id"]})
    tx.delete("votes", {"approval_id": row["id"], "reviewer": reviewer})
    vote = {"approval_id": row["id"], "reviewer": reviewer, "verdict": "approved"}
    tx.insert("votes", vote | {"digest": row["digest"], "reason": reason, "at": tx.now})
    return tx.count("votes", {"approval_id": row["id"], "verdict": "approved"})


def reviewers(tx: Transaction, row: Row, last: str) -> str:
    """The names of everybody who said yes, the last one included."""
    votes = tx.select("votes", {"approval_id": row["id"]}, order_by="at")
    return ", ".join(dict.fromkeys([*(vote["reviewer"] for vote in votes), last]))
