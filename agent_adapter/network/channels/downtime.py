"""Time without a hub counts against no deadline: nobody could act."""

from __future__ import annotations

from agent_adapter.network.channels import expectations
from agent_adapter.network.hub import task_operations
from agent_adapter.network.turns import turn_queue
from agent_adapter.store import channel_clocks, extending, timekeeping
from agent_adapter.store.base import Transaction
from agent_adapter.store.keys import conversation_key


def pass_over(tx: Transaction, seconds: float) -> None:
    """Add `seconds` to whatever runs: deadlines, life spans, and what turns wait for.

    A person's approval of a call gets only as much as the store believes the clock (see
    `store.timekeeping`).
    """
    if seconds <= 0:
        return
    expectations.shift(tx, seconds)
    channel_clocks.shift(tx, seconds)
    task_operations.shift(tx, seconds)
    moment = timekeeping.moment(tx)
    believed = seconds - moment.ahead
    if believed > 0:
        for conversation in _conversations(tx):
            where = {"conversation": conversation}
            extending.extend(tx, where, believed, now=moment.now)


def _conversations(tx: Transaction) -> list[str]:
    """Those of the channels in which a turn has begun and not ended."""
    begun = tx.select("turns", {"state in": list(turn_queue.OPEN), "attempt >": 0})
    channels = [tx.get("channels", id) for id in dict.fromkeys(row["channel_id"] for row in begun)]
    return [
        conversation_key(row["tenant"] or "", row["channel_id"])
        for row in channels
        if row is not None
    ]
