"""Operations that delete old runs whole: their calls, chains, payloads and approvals."""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.witness import UPKEEP

OF_A_RUN = ("calls", "ledger", "chain_heads", "payloads", "usage", "runs", "reservations")
"""The tables whose rows belong to one run."""


def old_runs(tx: Transaction, before: float) -> list[str]:
    """Runs whose newest entry is older than `before` and that nothing may still ask for."""
    heads = tx.select("chain_heads", order_by="run_id")
    return [row["run_id"] for row in heads if _is_over(tx, row, before)]


def prune(tx: Transaction, runs: Iterable[str], before: float, *, by: str) -> int:
    """Delete those of `runs` that are still old, and note it in the ledger; how many."""
    heads = [tx.get("chain_heads", run_id) for run_id in runs]
    over = [row["run_id"] for row in heads if row is not None and _is_over(tx, row, before)]
    for run_id in over:
        _delete(tx, run_id)
    if over:
        facts = {"reviewer": by, "runs": len(over), "before": before}
        ledger.append(tx, UPKEEP, "pruned", None, facts)
    return len(over)


def _is_over(tx: Transaction, head: Row, before: float) -> bool:
    run_id = head["run_id"]
    newest = tx.get("ledger", run_id, head["seq"])
    # A chain that lacks its end is evidence.
    if run_id == UPKEEP or newest is None or newest["at"] >= before:
        return False
    if any(_holds(tx, row) for row in tx.select("calls", {"run_id": run_id})):
        return False
    waiting = {"run_id": run_id, "state in": ["pending", "approved"]}
    return not any(
        tx.now <= (row["decide_by"] if row["state"] == "pending" else row["use_by"])
        for row in tx.select("approvals", waiting)
    )


def _holds(tx: Transaction, call: Row) -> bool:
    """Whether its run must stay: under way, unclear, once over all runs, or inside such a call."""
    if call["state"] == "open" or call["ending"] == "unknown" or call["once_key"] is not None:
        return True
    parent = call["parent_call_key"]
    around = None if parent is None else tx.get("calls", parent)
    return around is not None and _holds(tx, around)


def _delete(tx: Transaction, run_id: str) -> None:
    for row in tx.select("approvals", {"run_id": run_id}):
        tx.delete("votes", {"approval_id": row["id"]})
    for table in (*OF_A_RUN, "approvals"):
        tx.delete(table, {"run_id": run_id})
    tx.delete("taints", {"scope": f"run:{run_id}"})
    ledger.forget(tx, run_id)
