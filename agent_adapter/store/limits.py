"""Operations on what a run used: checked, reserved, settled and released."""

from __future__ import annotations

from decimal import Decimal

from agent_adapter.core.types import RunLimits
from agent_adapter.store.base import Row, Transaction


def exceeded(tx: Transaction, run_id: str, tool: str, cost: float, limits: RunLimits) -> str | None:
    """The name of the limit that one more call of `tool` would pass, or `None`."""
    total = _used(tx, run_id, "")
    checks = (
        ("max_calls", total["calls"] + 1),
        ("max_cost", _sum(total["cost"], cost)),
        ("max_seconds", tx.now - total["started_at"]),
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
    """The call ended: what it used stays counted, its place among the parallel ones is free."""
    tx.delete("reservations", {"call_key": call_key})


def release(tx: Transaction, call_key: str) -> None:
    """The call never entered its function: what it reserved is given back."""
    held = tx.get("reservations", call_key)
    if held is None:
        return
    tx.delete("reservations", {"call_key": call_key})
    for name in ("", held["tool"]):
        used = _used(tx, held["run_id"], name)
        spent = {"calls": used["calls"] - 1, "cost": _sum(used["cost"], -held["cost"])}
        _put(tx, held["run_id"], name, used, spent)


def _sum(spent: float, cost: float) -> float:
    """Money is added in decimals: three times 0.1 is 0.3, and fits into a limit of 0.3."""
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
