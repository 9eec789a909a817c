"""Operations that stop calls before they begin: all writes of a store, or one run."""

from __future__ import annotations

from agent_adapter.store import ledger, withdrawing
from agent_adapter.store.base import Condition, Read, Transaction
from agent_adapter.store.remembered import HALTS, all_halts
from agent_adapter.store.witness import CANCELLED, SWITCH, UPKEEP


def stopped(tx: Transaction) -> str | None:
    """Why writes are stopped; `None` while they may run."""
    row = tx.get("meta", SWITCH)
    return None if row is None else row["value"] or ""


def halted(tx: Transaction, *, run_id: str, root_run_id: str, write: bool) -> str | None:
    """Why a call of that run may not begin; `None` while it may."""
    wanted = _names(run_id, root_run_id, write)
    known = tx.memo.get(HALTS)
    halts = all_halts(tx) if known is None else known["names"]
    if halts is not None and halts.isdisjoint(wanted["name in"]):
        return None
    for row in tx.select("meta", wanted):
        what = "all writes are stopped" if row["name"] == SWITCH else "the run was cancelled"
        return f"{what} ({row['value'] or 'no reason given'})"
    return None


def reads(*, run_id: str, root_run_id: str, write: bool) -> list[Read]:
    """What `halted` will look at."""
    return [Read("meta", key=(name,)) for name in _names(run_id, root_run_id, write)["name in"]]


def _names(run_id: str, root_run_id: str, write: bool) -> Condition:
    cancelled = {f"{CANCELLED}{name}" for name in (run_id, root_run_id or run_id)}
    return {"name in": sorted([*cancelled, SWITCH] if write else cancelled)}


def cancel_run(tx: Transaction, run_id: str, *, by: str, reason: str) -> bool:
    """Stop new calls of the run and of the runs that its tools start; `False` if unknown."""
    if not tx.count("ledger", {"run_id": run_id}):
        return False
    if tx.insert("meta", {"name": f"{CANCELLED}{run_id}", "value": reason}):
        tx.memo.pop(HALTS, None)
        tx.update("runs", {"run_id": run_id}, {"cancelled": 1})
        ledger.append(tx, run_id, "run-cancelled", None, {"reviewer": by, "reason": reason})
        why = f"the run was cancelled ({reason or 'no reason given'})"
        withdrawing.withdraw_run(tx, run_id, reason=why)
    return True


def stop_writes(tx: Transaction, *, by: str, reason: str) -> None:
    """Refuse every write that has not begun, until `allow_writes`."""
    if not tx.insert("meta", {"name": SWITCH, "value": reason}):
        tx.update("meta", {"name": SWITCH}, {"value": reason})
    tx.memo.pop(HALTS, None)
    ledger.append(tx, UPKEEP, "writes-stopped", None, {"reviewer": by, "reason": reason})


def allow_writes(tx: Transaction, *, by: str) -> bool:
    """Allow writes again; returns whether they had been stopped."""
    if not tx.delete("meta", {"name": SWITCH}):
        return False
    tx.memo.pop(HALTS, None)
    ledger.append(tx, UPKEEP, "writes-allowed", None, {"reviewer": by})
    return True
