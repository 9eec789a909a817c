"""Operations on parked turns: what they wait for, and what makes them due again.

A round that meets a call which a person must decide is parked; whatever settles that call makes
the turn due again in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.store import channel_clocks, timekeeping
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.positions import next_position


def park(tx: Transaction, turn_id: str, waits: Iterable[str]) -> None:
    """Note what the turn waits for: ids of approvals, keys of calls in doubt."""
    for waits_for in waits:
        record = tx.get("approvals", waits_for)
        until = None if record is None else record["decide_by"]
        tx.insert("turn_waits", {"waits_for": waits_for, "turn_id": turn_id, "until": until})


def is_settled(tx: Transaction, waits_for: str) -> bool:
    """Whether the approval is decided or out of time, or the call no longer in doubt."""
    record = tx.get("approvals", waits_for)
    if record is not None:
        return bool(record["state"] != "pending" or timekeeping.now(tx) > record["decide_by"])
    call = tx.get("calls", waits_for)
    return call is not None and call["state"] == "done" and call["ending"] != "unknown"


def wake(tx: Transaction, waits_for: str) -> int:
    """Make every turn that waits for it due again; how many there were."""
    rows = tx.select("turn_waits", {"waits_for": waits_for})
    return sum(wake_turn(tx, row["turn_id"]) for row in rows)


def wake_turn(tx: Transaction, turn_id: str) -> bool:
    """Make a parked turn due, and let its clocks run on; `False` if it is not parked."""
    forget(tx, turn_id)
    due: Row = {"state": "due", "due_at": tx.now, "due_event": next_position(tx)}
    if not tx.update("turns", {"turn_id": turn_id, "state": "parked"}, due):
        return False
    turn = tx.get("turns", turn_id)
    if turn is not None:
        parked = {"channel_id": turn["channel_id"], "turn": turn["n"]}
        tx.delete("expectations", parked | {"name": channel_clocks.PARKED})
        channel_clocks.run_on(tx, turn["channel_id"])
    return True


def forget(tx: Transaction, turn_id: str) -> None:
    """The turn waits for nothing any more."""
    tx.delete("turn_waits", {"turn_id": turn_id})
