"""Reopens a channel that has ended while somebody was still expected to speak."""

from __future__ import annotations

from agent_adapter.core.errors import AccessDeniedError, ProtocolError
from agent_adapter.flow.envelope import EV_CHANNEL_OPENED, TURN_EVENTS, Envelope
from agent_adapter.network.channels import expectations, log
from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row, in_state
from agent_adapter.network.channels.transaction import Change, ChannelTransaction, HubContext
from agent_adapter.network.hub import audit
from agent_adapter.store.base import Transaction

_PAGE = 200


def reopen(
    tx: Transaction,
    context: HubContext,
    channel_id: str,
    cached: ChannelSnapshot | None = None,
    *,
    by: str | None = None,
) -> Change:
    """Let an ended channel go on with the turn at which it ended; an open one is left unchanged.

    The turn keeps its id, so that calls which ended in it are not repeated. `by` is the opener, the
    only participant who may ask. Raises `ProtocolError` for a channel that was never active, whose
    type or graph has ended it, or whose transcript was removed.
    """
    row = channel_row(tx, channel_id)
    channel = ChannelTransaction(tx, context, row, cached)
    if by is not None and by != channel.metadata.creator_id:
        raise AccessDeniedError(f"only the opener of channel {channel_id} may reopen it")
    if not channel.is_over:
        return Change(channel_id, channel.before, repeated=True)
    reason = channel.metadata.close_reason
    if row["summary"] is not None:
        raise ProtocolError(f"channel {channel_id} cannot be reopened: its transcript was removed")
    if not _was_active(tx, channel):
        raise ProtocolError(
            f"channel {channel_id} cannot be reopened: it never became active ({reason}); open a "
            "new one"
        )
    last = _last_spoken(tx, channel_id, row["seq"])
    if last is not None and _ends_it(channel, last):
        raise ProtocolError(
            f"channel {channel_id} cannot be reopened: it has come to its end ({reason}); fork it "
            "at an earlier message instead"
        )
    channel.reopen()
    channel.say(EV_CHANNEL_OPENED, {"channel_id": channel_id, "reopened_after": reason}, by=by)
    facts = {"channel_id": channel_id, "reason": reason}
    audit.write(tx, audit.REOPENED, facts if by is None else facts | {"agent_id": by})
    expectations.of_silence(tx, channel.before.deadlines, channel_id)
    channel.go_on()
    return channel.finish()


def _was_active(tx: Transaction, channel: ChannelTransaction) -> bool:
    # It comes right after the invitations and their answers.
    first = list(range(1, 2 * len(channel.metadata.participants) + 2))
    where = {"channel_id": channel.row["channel_id"], "seq in": first}
    return any(row["event_type"] == EV_CHANNEL_OPENED for row in tx.select("envelopes", where))


def _last_spoken(tx: Transaction, channel_id: str, seq: int) -> Envelope | None:
    while seq > 0:
        first = max(0, seq - _PAGE)
        for _, envelope in reversed(log.read_from(tx, channel_id, first, seq - first)):
            if envelope.event_type in TURN_EVENTS:
                return envelope
        seq = first
    return None


def _ends_it(channel: ChannelTransaction, last: Envelope) -> bool:
    """Whether the channel's own type or graph ended it with its last message."""
    metadata = in_state(channel.metadata, ChannelState.ACTIVE)
    result = channel.before.adapter.on_accepted(metadata, last, channel.state)
    return result.next_state not in (None, ChannelState.ACTIVE)
