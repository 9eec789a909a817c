"""Positions of events: one number per event of a store, growing in the order of the commits.

An event is a row that says what happened, with its position in a column of its own. A subscriber
reads the rows behind the last position that it has seen. Positions are microseconds since the
epoch, moved up where needed: they never repeat, also where the newest rows were pruned.
"""

from __future__ import annotations

from agent_adapter.store.base import Transaction

COLUMNS: tuple[tuple[str, str], ...] = (
    ("envelopes", "event"),
    ("audit", "event"),
    ("turns", "due_event"),
    ("turns", "started_event"),
    ("turns", "ended_event"),
    ("tasks", "event"),
)
"""The columns that hold positions, each with an index."""

MEMO = ("events",)
"""The memo's key for the newest position; no run or chain has such a name."""


def next_position(tx: Transaction) -> int:
    """A new position, for one event that the operation writes."""
    known = tx.memo.get(MEMO)
    last = newest(tx) if known is None else known["position"]
    position: int = max(last + 1, int(tx.now * 1_000_000))
    tx.memo[MEMO] = {"position": position}
    return position


def newest(tx: Transaction) -> int:
    """The position of the newest event; 0 where there is none."""
    found = 0
    for table, column in COLUMNS:
        rows = tx.select(table, {f"{column} >": 0}, order_by=column, descending=True, limit=1)
        found = max(found, rows[0][column] if rows else 0)
    return found


def used(tx: Transaction) -> int:
    """The newest position that is known without reading; 0 where none is."""
    known = tx.memo.get(MEMO)
    return 0 if known is None else int(known["position"])
