"""What a store holds after a run."""

from __future__ import annotations

from typing import Any

from agent_adapter.exec.ledger import verify
from agent_adapter.store.base import Store, Transaction

__all__ = ["summary"]


async def summary(store: Store) -> dict[str, Any]:
    """Calls, runs and entries in the store, and what `verify` finds wrong with its ledger."""
    await store.flush()
    counted = await store.read(_count)
    report = await verify(store)
    return {**counted, "verified": report.ok, "problems": [str(x) for x in report.problems]}


def _count(tx: Transaction) -> dict[str, Any]:
    calls = tx.select("calls")
    return {
        "calls": len(calls),
        "calls_ok": sum(call["ending"] == "ok" for call in calls),
        "writes": sum(call["effects"] == "write" for call in calls),
        "runs": len({call["run_id"] for call in calls}),
        "entries": tx.count("ledger"),
    }
