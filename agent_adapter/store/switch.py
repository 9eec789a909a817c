"""Operations on what stops calls that have not begun: all writes of a store, or one run."""

from __future__ import annotations

from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction

UPKEEP = "upkeep"
"""The run under which the ledger keeps what was done to the store as a whole."""

_NAME = "writes-stopped"
_CANCELLED = "cancelled:"


def stopped(tx: Transaction) -> str | None:
    """Why writes are stopped; `None` while they may run."""
    row = tx.get("meta", _NAME)
    return None if row is None else row["value"] or ""


def halted(tx: Transaction, *, run_id: str, root_run_id: str, write: bool) -> str | None:
    """Why a call of that run may not begin; `None` while it may."""
    cancelled = {f"{_CANCELLED}{name}" for name in (run_id, root_run_id or run_id)}
    names = [*cancelled, _NAME] if write else list(cancelled)
    for row in tx.select("meta", {"name in": sorted(names)}):
        what = "all writes are stopped" if row["name"] == _NAME else "the run was cancelled"
        return f"{what} ({row['value'] or 'no reason given'})"
    return None


def cancel_run(tx: Transaction, run_id: str, *, by: str, reason: str) -> bool:
    """Stop new calls of the run and of the runs that its tools start; `False` if unknown."""
    if not tx.count("ledger", {"run_id": run_id}):
        return False
    if tx.insert("meta", {"name": f"{_CANCELLED}{run_id}", "value": reason}):
        tx.update("runs", {"run_id": run_id}, {"cancelled": 1})
        ledger.append(tx, run_id, "run-cancelled", None, {"reviewer": by, "reason": reason})
    return True


def stop_writes(tx: Transaction, *, by: str, reason: str) -> None:
    """Refuse every write that has not begun, until `allow_writes`."""
    if not tx.insert("meta", {"name": _NAME, "value": reason}):
        tx.update("meta", {"name": _NAME}, {"value": reason})
    ledger.append(tx, UPKEEP, "writes-stopped", None, {"reviewer": by, "reason": reason})


def allow_writes(tx: Transaction, *, by: str) -> bool:
    """Let writes run again; returns whether they were stopped."""
    if not tx.delete("meta", {"name": _NAME}):
        return False
    ledger.append(tx, UPKEEP, "writes-allowed", None, {"reviewer": by})
    return True
