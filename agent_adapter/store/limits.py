"""Operations on the usage of a run: check, reserve, settle and release."""

from __future__ import annotations

from decimal import Decimal

from agent_adapter.core.types import RunLimits
from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction


def exceeded(tx: Transaction, run_id: str, tool: str, cost: float, limits: RunLimits) -> str | None:
    """The name of the limit that one more call of `tool` would pass, or `None`."""
    total = _used(tx, run_id, "")
    seconds = 0.0
    if limits.max_seconds is not None:
        seconds = _worked(tx, run_id, total["started_at"])
    checks = (
        ("max_calls", total["calls"] + 1),
        ("max_cost", _sum(total["cost"], cost)),
        ("max_seconds", seconds),
    )
    for name, value in checks:
        limit = getattr(limits, name)
        if limit is not None and value > limit:
            return name
    per_tool = limits.max_calls_per_tool
    if per_tool is not None and _used(tx, run_id, tool)["calls"] + 1 > per_tool:
        return "max_calls_per_tool"
    if limits.max_parallel is not None and _under_way(tx, run_id) + 1 > limits.max_parallel:
        return "max_parallel"
    return None


def stood_still(tx: Transaction, run_id: str, since: float) -> None:
    """A person was asked from `since` on until now: the run's seconds do not count it."""
    used = tx.get("usage", run_id, "")
    waited = tx.now - since
    if used is None or waited <= 0:
        return
    tx.update("usage", {"run_id": run_id, "tool": ""}, {"started_at": used["started_at"] + waited})
    ledger.append(tx, run_id, "waited", None, {"seconds": round(waited, 3)})


def _worked(tx: Transaction, run_id: str, began: float) -> float:
    """Seconds since the run began, without those in which it waited for an answer that came.

    What a run does beside a question that is still open is its own time.
    """
    asked = tx.select("approvals", {"root_run_id": run_id, "state !=": "pending"})
    waits = [(row["created_at"], _went_on_at(tx, row)) for row in asked]
    waited, until = 0.0, began
    for start, end in sorted(waits):
        waited += max(0.0, end - max(start, until))
        until = max(until, end)
    return tx.now - began - waited


def _went_on_at(tx: Transaction, row: Row) -> float:
    """When the asker went on: an approval counts until it is used, since nobody works before."""
    if row["state"] == "taken":
        return float(row["taken_at"])
    if row["state"] == "expired":
        return min(tx.now, float(row["use_by"] or row["decide_by"]))
    return tx.now if row["state"] == "approved" else float(row["decided_at"])


def reserve(tx: Transaction, call_key: str, run_id: str, tool: str, cost: float) -> None:
    """Count the call against its run until it is settled or released; once, if it is run again."""
    release(tx, call_key)
    for name in ("", tool):
        used = _used(tx, run_id, name)
        spent = {"calls": used["calls"] + 1, "cost": _sum(used["cost"], cost)}
        _put(tx, run_id, name, used, spent)
    held = {"call_key": call_key, "run_id": run_id, "tool": tool, "cost": cost}
    tx.insert("reservations", held | {"owner_id": tx.owner_id, "at": tx.now})


def settle(tx: Transaction, call_key: str) -> None:
    """The call ended: its usage stays counted, its parallel slot is free."""
    tx.delete("reservations", {"call_key": call_key})


def release(tx: Transaction, call_key: str) -> None:
    """The call did not enter its function: release its reservation."""
    held = tx.get("reservations", call_key)
    if held is None:
        return
    tx.delete("reservations", {"call_key": call_key})
    for name in ("", held["tool"]):
        used = _used(tx, held["run_id"], name)
        spent = {"calls": used["calls"] - 1, "cost": _sum(used["cost"], -held["cost"])}
        _put(tx, held["run_id"], name, used, spent)


def _sum(spent: float, cost: float) -> float:
    """Costs are added as decimals: three times 0.1 is 0.3, which fits a limit of 0.3."""
    return float(Decimal(repr(spent)) + Decimal(repr(cost)))


def _used(tx: Transaction, run_id: str, tool: str) -> Row:
    found = tx.get("usage", run_id, tool)
    return found or {"calls": 0, "cost": 0.0, "started_at": tx.now, "new": True}


def _put(tx: Transaction, run_id: str, tool: str, used: Row, spent: Row) -> None:
    if "new" in used:
        tx.insert("usage", {"run_id": run_id, "tool": tool, "started_at": tx.now} | spent)
    else:
        tx.update("usage", {"run_id": run_id, "tool": tool}, spent)


def _under_way(tx: Transaction, run_id: str) -> int:
    held = tx.select("reservations", {"run_id": run_id})
    return sum(tx.is_live(row["owner_id"]) for row in held)
