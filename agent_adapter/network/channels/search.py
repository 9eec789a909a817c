"""Channels that fit a filter, and entries of a log that have a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_adapter.network.channels.log import read_from
from agent_adapter.network.channels.reports import ChannelLine, LogLine, line_of, text_line
from agent_adapter.network.channels.snapshot import channel_row
from agent_adapter.store import queries
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.conditions import has_text

_CHUNK = 200
_LOOKED_AT = 20_000
_ENTRIES_LOOKED_AT = 5_000
_SEARCHED = ("channel_id", "type", "close_reason", "labels")


def find_channels(
    tx: Transaction,
    tenant: str,
    *,
    states: Sequence[str] | None = None,
    text: str | None = None,
    expected: str | None = None,
    limit: int = 50,
    start: float | None = None,
) -> tuple[list[ChannelLine], float | None]:
    """A tenant's channels, the newest first, and where the next page begins.

    `text` is a part of an id, a type, a label, a close reason or a participant's name, whatever the
    case; `expected` is the participant whose turn it is.
    """
    where: dict[str, Any] = {"tenant": tenant} if states is None else {"state in": list(states)}
    where |= {"tenant": tenant} | ({} if expected is None else {"expected": expected})
    of_members = _channels_of(tx, text)
    found: list[ChannelLine] = []
    looked, at = 0, start
    while looked < _LOOKED_AT:
        page = queries.paged(tx, "channels", where, by="created_at", limit=_CHUNK, start=at)
        for row in page.rows:
            if text is not None and row["channel_id"] not in of_members and not _has(row, text):
                continue
            if len(found) == limit:
                return found, row["created_at"] + 1e-6
            found.append(line_of(tx, row))
        if page.next is None:
            return found, None
        looked, at = looked + len(page.rows), page.next
    return found, at


def find_entries(
    tx: Transaction, channel_id: str, text: str, *, limit: int = 100, before: int | None = None
) -> tuple[list[LogLine], int | None]:
    """Entries of a log that say a text, the newest first, and where the next page begins.

    A page looks at 5,000 entries at most: it may be short and have a next page.
    """
    names = queries.member_names(tx, channel_id)
    found: list[LogLine] = []
    at = before if before is not None else channel_row(tx, channel_id)["seq"] + 1
    least = max(1, at - _ENTRIES_LOOKED_AT)
    while at > least:
        start = max(least, at - _CHUNK)
        # In Python, and not by a condition: bodies are JSON with escapes.
        for seq, envelope in reversed(read_from(tx, channel_id, start - 1, at - start)):
            if not has_text(text_line(envelope), text):
                continue
            if len(found) == limit:
                return found, found[-1].seq
            sender = names.get(envelope.sender_id) or str(envelope.sender_id)
            found.append(LogLine(seq=seq, sender=sender, envelope=envelope))
        at = start
    return found, least if least > 1 else None


def _channels_of(tx: Transaction, name: str | None) -> set[str]:
    if name is None:
        return set()
    rows = tx.select("channel_members", {"name has": name}, limit=_LOOKED_AT)
    return {row["channel_id"] for row in rows}


def _has(row: Row, text: str) -> bool:
    return any(has_text(row[name], text) for name in _SEARCHED)
