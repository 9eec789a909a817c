"""Operations on the switch that stops every write of a store, in whichever process."""

from __future__ import annotations

from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction

__all__ = ["UPKEEP", "allow_writes", "stop_writes", "stopped"]

UPKEEP = "upkeep"
"""The run under which the ledger keeps what was done to the store as a whole."""

_NAME = "writes-stopped"


def stopped(tx: Transaction) -> str | None:
    """Why writes are stopped; `None` while they may run."""
    row = tx.get("meta", _NAME)
    return None if row is None else row["value"] or ""


def stop_writes(tx: Transaction, *, by: str, reason: str) -> None:
    """Refuse every write that has not begun, until `allow_writes`."""
    if not tx.insert("meta", {"name": _NAME, "value": reason}):
        tx.update("meta", {"name": _NAME}, {"value": reason})
    ledger.append(tx, UPKEEP, "writes-stopped", None, {"reviewer": by, "reason": reason})


def allow_writes(tx: Transaction, *, by: str) -> bool:
    """Let writes run again; whether they had been stopped."""
    if not tx.delete("meta", {"name": _NAME}):
        return False
    ledger.append(tx, UPKEEP, "writes-allowed", None, {"reviewer": by})
    return True
