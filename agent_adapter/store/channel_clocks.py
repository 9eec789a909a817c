"""The clocks of a channel: they stand still while nobody in it can act.

Its life span and its deadlines stand while one of its turns is parked and while it is paused; what
is left of each is kept in its row. They run on when the last such turn goes on. Only the limit of
the wait itself, `parked_within`, runs meanwhile. Time without a hub is added to all of them.
"""

from __future__ import annotations

from agent_adapter.store.base import Row, Transaction

PARKED = "parked_within"
"""The expectation about the time that a turn is parked."""

_OPEN = ["active", "pending"]


def stands(tx: Transaction, channel: Row) -> bool:
    """Whether the clocks of the channel stand still now."""
    parked = {"channel_id": channel["channel_id"], "state": "parked"}
    return bool(channel["paused"]) or bool(tx.select("turns", parked, limit=1))


def stop(tx: Transaction, channel_id: str) -> None:
    """Let the clocks of a channel stand still; each keeps its remaining seconds."""
    running = {"channel_id": channel_id, "fired_at": None, "due_at !=": None}
    for row in tx.select("expectations", running):
        if row["name"] != PARKED:
            left = max(0.0, row["due_at"] - tx.now)
            tx.update("expectations", _key(row), {"due_at": None, "left": left})
    channel = tx.get("channels", channel_id)
    if channel is not None and channel["expires_at"] is not None:
        left = max(0.0, channel["expires_at"] - tx.now)
        _set(tx, channel, {"expires_at": None, "ttl_left": left, "ttl": life_span(channel)})


def run_on(tx: Transaction, channel_id: str) -> None:
    """Let the clocks of a channel run on where they stood, unless another turn of it is parked."""
    channel = tx.get("channels", channel_id)
    if channel is None or stands(tx, channel):
        return
    run_deadlines(tx, channel_id)
    if channel["ttl_left"] is not None:
        _set(tx, channel, {"expires_at": tx.now + channel["ttl_left"], "ttl_left": None})


def run_deadlines(tx: Transaction, channel_id: str, turn: int | None = None) -> None:
    """Let the deadlines of a channel, or only those of one turn, run on where they stood."""
    where: Row = {"channel_id": channel_id, "left !=": None}
    for row in tx.select("expectations", where if turn is None else where | {"turn": turn}):
        tx.update("expectations", _key(row), {"due_at": tx.now + row["left"], "left": None})


def life_span(channel: Row) -> float | None:
    """How many seconds the channel lives in all; `None` is for ever."""
    if channel["ttl"] is not None:
        return float(channel["ttl"])
    if channel["expires_at"] is None:
        return None
    # Of an earlier version, which never moved it.
    return float(channel["expires_at"] - channel["created_at"])


def shift(tx: Transaction, seconds: float) -> None:
    """Add the time without a hub to the life span of every open channel; some stand still."""
    for state in _OPEN:
        for channel in tx.select("channels", {"state": state, "expires_at !=": None}):
            values: Row = {"expires_at": channel["expires_at"] + seconds}
            _set(tx, channel, values | {"ttl": life_span(channel)})
            if stands(tx, channel):
                stop(tx, channel["channel_id"])


def _set(tx: Transaction, channel: Row, values: Row) -> None:
    # Another revision: whoever has the channel in memory reads it again.
    values = values | {"revision": channel["revision"] + 1}
    tx.update("channels", {"channel_id": channel["channel_id"]}, values)


def _key(row: Row) -> Row:
    return {name: row[name] for name in ("channel_id", "turn", "position")}
