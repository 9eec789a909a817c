"""What a participant may read of the end of a channel's log, and of its beginning."""

from __future__ import annotations

import json

from agent_adapter.flow.envelope import EV_PACKET, EV_TEXT, Envelope
from agent_adapter.network.channels.log import stored
from agent_adapter.network.channels.snapshot import channel_row
from agent_adapter.store.base import Row, Transaction

_SPOKEN = (EV_TEXT, EV_PACKET)
_MOST_LOOKED_AT = 2000
_OPENING_PAGE = 20
_MOST_SKIPPED = 200


def window(
    tx: Transaction,
    channel_id: str,
    participant_id: str,
    recent_n: int,
    before: int | None = None,
    *,
    pinned: bool = False,
) -> list[Envelope]:
    """The newest `recent_n` texts and packets that the participant may see, oldest first.

    `before` excludes entries from that sequence number on. Entries that the participant may not
    see do not count. At most 2,000 entries are read. If `pinned`, the first one that the
    participant may see comes before them where it is older.
    """
    row = channel_row(tx, channel_id)
    last = row["seq"] if before is None else min(row["seq"], before - 1)
    found: list[Row] = []
    looked_at, size = 0, max(8, recent_n + 4)
    while last > 0 and len(found) < recent_n and looked_at < _MOST_LOOKED_AT:
        places = list(range(max(1, last - size + 1), last + 1))
        rows = tx.select("envelopes", {"channel_id": channel_id, "seq in": places}, order_by="seq")
        for entry in reversed(rows):
            if len(found) < recent_n and _may_see(entry, participant_id):
                found.append(entry)
        last, looked_at = places[0] - 1, looked_at + len(places)
    newest = [stored(entry["body"]) for entry in reversed(found)]
    if not pinned or len(newest) < recent_n or row["spoken"] <= recent_n:
        return newest
    first = _opening(tx, channel_id, participant_id)
    older = first is not None and first.envelope_id not in {item.envelope_id for item in newest}
    return [first, *newest] if first is not None and older else newest


def _opening(tx: Transaction, channel_id: str, participant_id: str) -> Envelope | None:
    """The first text or packet that the participant may see, near the beginning of the log."""
    for start in range(1, _MOST_SKIPPED, _OPENING_PAGE):
        places = list(range(start, start + _OPENING_PAGE))
        rows = tx.select("envelopes", {"channel_id": channel_id, "seq in": places}, order_by="seq")
        for entry in rows:
            if _may_see(entry, participant_id):
                return stored(entry["body"])
    return None


def _may_see(entry: Row, participant_id: str) -> bool:
    if entry["event_type"] not in _SPOKEN:
        return False
    audience = entry["audience"]
    if audience is None or entry["sender_id"] == participant_id:
        return True
    return participant_id in json.loads(audience)
