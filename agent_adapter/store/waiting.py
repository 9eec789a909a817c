"""What waits for a person: the counts that every page of the console shows."""

from __future__ import annotations

from dataclasses import dataclass

from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.queries import human_id
from agent_adapter.store.timekeeping import now

_MOST_TURNS = 200
_MOST_LOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Pending approvals, writes with unknown outcome, and turns of this person."""

    waiting: int
    doubt: int
    turns: int


def counts(tx: Transaction, tenant: str, name: str) -> Counts:
    """What waits in the tenant, and the turns of the human participant of that name."""
    return Counts(
        waiting=approvals_waiting(tx, tenant),
        doubt=writes_in_doubt(tx, tenant),
        turns=turns_waiting(tx, tenant, name),
    )


def approvals_waiting(tx: Transaction, tenant: str) -> int:
    """How many approvals a person can decide now."""
    where = {"tenant": tenant, "state": "pending", "decide_by >=": now(tx)}
    return tx.count("approvals", where)


def requests_of_run(tx: Transaction, run_id: str, limit: int) -> list[Row]:
    """The requests of a run that a person can decide now, oldest first."""
    where = {"run_id": run_id, "state": "pending", "decide_by >=": now(tx)}
    return tx.select("approvals", where, order_by="created_at", limit=limit)


def writes_in_doubt(tx: Transaction, tenant: str) -> int:
    """How many writes have an unknown outcome; beyond 200 lost with their processes, those."""
    where = {"tenant": tenant, "state": "open", "effects": "write"}
    lost = tx.select("calls", where, limit=_MOST_LOST)
    owners = [row["owner_id"] for row in lost if row["owner_id"] != tx.owner_id]
    dead = len([owner for owner in owners if not tx.is_live(owner)])
    return dead + tx.count("calls", {"tenant": tenant, "ending": "unknown"})


def turns_waiting(tx: Transaction, tenant: str, name: str) -> int:
    """How many channels of the tenant wait for the human participant of that name."""
    agent_id = human_id(tx, name)
    if agent_id is None:
        return 0
    due = tx.select("turns", {"agent_id": agent_id, "state": "due"}, limit=_MOST_TURNS)
    rows = (tx.get("channels", row["channel_id"]) for row in due)
    mine = [row for row in rows if row is not None and (row["tenant"] or "") == tenant]
    return len([row for row in mine if row["expected"] == agent_id and not row["paused"]])
