"""Ends channels whose life span is over."""

from __future__ import annotations

from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row
from agent_adapter.network.channels.transaction import Change, ChannelTransaction, HubContext
from agent_adapter.store import channel_clocks
from agent_adapter.store.base import Row, Transaction

_AT_ONCE = 200


def expire(
    tx: Transaction, context: HubContext, channel_id: str, cached: ChannelSnapshot | None = None
) -> Change:
    """Expire the channel if its lifetime has ended; where its clocks stand, stop this one too."""
    row = channel_row(tx, channel_id)
    channel = ChannelTransaction(tx, context, row, cached)
    over = row["expires_at"] is None or row["expires_at"] > tx.now
    if channel.is_over or over:
        return Change(channel_id, channel.before, repeated=True)
    if channel_clocks.stands(tx, row):
        channel_clocks.stop(tx, channel_id)
        return Change(channel_id, channel.before, repeated=True)
    channel.end("ttl_expired", ChannelState.EXPIRED)
    return channel.finish()


def expire_due(tx: Transaction) -> list[str]:
    """Ids of open channels whose lifetime has ended, at most 200 per state."""
    found: list[Row] = []
    for state in (ChannelState.ACTIVE, ChannelState.PENDING):
        where = {"state": state.value, "expires_at <=": tx.now}
        found += tx.select("channels", where, order_by="expires_at", limit=_AT_ONCE)
    return [row["channel_id"] for row in found]
