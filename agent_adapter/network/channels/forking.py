"""Forks a channel at a message of its log, or folds the log again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import NotFoundError, ProtocolError
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_EXPIRED,
    EV_CHANNEL_OPENED,
    EV_PACKET,
    EV_TEXT,
    Envelope,
    is_turn,
)
from agent_adapter.network.channels import log
from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.channels.snapshot import (
    ChannelSnapshot,
    channel_row,
    iso,
    load_snapshot,
    state_text,
)
from agent_adapter.network.channels.transaction import Change, ChannelTransaction, HubContext
from agent_adapter.network.hub import audit
from agent_adapter.store import channel_clocks, taint, trusted
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import conversation_key

_PAGE = 500
_ENDS = (EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED)
_COPIED = ["type", "version", "creator_id", "graph_hash", "knobs", "labels", "metadata", "tenant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The result of folding a channel's log again.

    Attributes:
        channel_id: the channel.
        envelopes: how many entries its log has.
        matches: whether the folded log equals the stored state.
        differences: one line per difference.
        state: the folded state, as JSON.
    """

    channel_id: str
    envelopes: int
    matches: bool
    differences: tuple[str, ...]
    state: Mapping[str, Any]


def fork(
    tx: Transaction, context: HubContext, channel_id: str, at: str, new_channel_id: str
) -> Change:
    """Copy a channel's log up to the envelope `at` into a new, paused channel.

    Context, audience and taint are copied; approvals, limits and deadlines are not. Repeating the
    operation with the same new id returns the existing fork.
    """
    made = tx.get("channels", new_channel_id)
    if made is not None:
        snapshot = load_snapshot(tx, made, context.adapters)
        return Change(new_channel_id, snapshot, repeated=True)
    source = channel_row(tx, channel_id)
    until = _place(tx, channel_id, at, before_end=True)
    # Raises for an unknown channel type, like the two lines above: before the first insert.
    first = load_snapshot(tx, source, context.adapters)
    row = _copied(tx, source, new_channel_id)
    channel = _copy_log(tx, context, first, row, until)
    channel.give_turn(first.adapter.expected_next(channel.metadata, channel.state))
    taint.copy(tx, _thread(source), _thread(row))
    trusted.copy(tx, _thread(source), _thread(row))
    facts = {"channel_id": new_channel_id, "parent_channel_id": channel_id, "at_envelope": at}
    audit.write(tx, audit.FORKED, facts | {"writes": writes_after(tx, channel_id, at)})
    return channel.finish()


def resume(
    tx: Transaction, context: HubContext, channel_id: str, cached: ChannelSnapshot | None = None
) -> Change:
    """Resume a fork: the turn at which it stopped is due."""
    row = channel_row(tx, channel_id)
    channel = ChannelTransaction(tx, context, row, cached)
    if not row["paused"] or channel.is_over:
        return Change(channel_id, channel.before, repeated=True)
    return channel.unpause()


def writes_after(tx: Transaction, channel_id: str, at: str) -> list[dict[str, Any]]:
    """Write calls of the channel's turns after the envelope `at`: a fork does not undo them."""
    taken = _turns_until(tx, channel_id, _place(tx, channel_id, at))
    later = tx.select("turns", {"channel_id": channel_id, "n >": taken}, order_by="n")
    return [
        _write(row) for turn in later if turn["attempt"] for row in _writes(tx, turn["turn_id"])
    ]


def replay(tx: Transaction, context: HubContext, channel_id: str) -> ReplayReport:
    """Fold the channel's log again and compare the result with the stored state."""
    row = channel_row(tx, channel_id)
    if row["summary"] is not None:
        raise NotFoundError(
            f"the transcript of channel {channel_id} was removed on"
            f" {iso(json.loads(row['summary'])['at'])}; its summary and the digest of its log are"
            " left"
        )
    snapshot = load_snapshot(tx, row, context.adapters)
    adapter, state = snapshot.adapter, snapshot.adapter.initial_state(snapshot.metadata)
    seq = spoken = 0
    reason: str | None = None
    differences: list[str] = []
    ids: set[str] = set()
    while page := log.read_from(tx, channel_id, seq, _PAGE):
        for place, envelope in page:
            if place != seq + 1:
                differences.append(f"the log has a gap before its entry {place}")
            if envelope.envelope_id in ids:
                differences.append(f"{envelope.envelope_id} is in the log twice")
            ids.add(envelope.envelope_id)
            if envelope.event_type == EV_CHANNEL_OPENED:
                reason = None  # it was reopened
            if reason is not None:
                differences.append(f"entry {place} comes after the channel's end")
            state, seq, spoken = adapter.fold(envelope, state), place, spoken + is_turn(envelope)
            if envelope.event_type in _ENDS:
                reason = str(envelope.event_data.get("reason", ""))
    folded = adapter.state_to_dict(state)
    differences += _differences(row, json.loads(row["folded"]), folded, seq, spoken, reason)
    return ReplayReport(
        channel_id=channel_id,
        envelopes=seq,
        matches=not differences,
        differences=tuple(differences),
        state=folded,
    )


def _differences(
    row: Row,
    kept: Mapping[str, Any],
    folded: Mapping[str, Any],
    seq: int,
    spoken: int,
    reason: str | None,
) -> list[str]:
    found = [
        f"the state's {name} is {kept.get(name)!r}, the log gives {folded.get(name)!r}"
        for name in sorted({*kept, *folded})
        if kept.get(name) != folded.get(name)
    ]
    for name, value in (("seq", seq), ("spoken", spoken)):
        if row[name] != value:
            found.append(f"the channel's {name} is {row[name]}, the log gives {value}")
    over = ChannelState(row["state"]).is_terminal
    if over != (reason is not None) or (over and row["close_reason"] != reason):
        ended = "goes on" if reason is None else f"ends with {reason!r}"
        found.append(f"the channel is {row['state']} ({row['close_reason']}), its log {ended}")
    return found


def _place(tx: Transaction, channel_id: str, at: str, *, before_end: bool = False) -> int:
    """The sequence number of an envelope of the channel."""
    rows = tx.select("envelopes", {"envelope_id": at}, limit=1)
    if not rows or rows[0]["channel_id"] != channel_id:
        raise NotFoundError(f"channel {channel_id} has no envelope {at!r}")
    if before_end and rows[0]["event_type"] in _ENDS:
        raise ProtocolError(f"{at} is the channel's end; fork at an envelope before it")
    place: int = rows[0]["seq"]
    return place


def _turns_until(tx: Transaction, channel_id: str, seq: int) -> int:
    """The number of the last turn that had ended at that place of the log."""
    while seq > 0:
        places = list(range(max(1, seq - _PAGE + 1), seq + 1))
        where = {"channel_id": channel_id, "seq in": places}
        for row in tx.select("envelopes", where, order_by="seq", descending=True):
            turn = tx.get("turns", row["turn_id"]) if row["turn_id"] is not None else None
            if turn is not None and row["event_type"] in (EV_TEXT, EV_PACKET):
                number: int = turn["n"]
                return number
        seq = places[0] - 1
    return 0


def _copied(tx: Transaction, source: Row, new_channel_id: str) -> Row:
    row: Row = {name: source[name] for name in _COPIED}
    row |= {"channel_id": new_channel_id, "parent_channel_id": source["channel_id"], "paused": 1}
    row |= {"state": ChannelState.ACTIVE.value, "created_at": tx.now, "expires_at": None}
    row |= {"closed_at": None, "close_reason": None, "revision": 0, "seq": 0, "spoken": 0}
    row |= {"turn_id": None, "turn_n": 0, "expected": None, "folded": "", "summary": None}
    lives = channel_clocks.life_span(source)
    row |= {"ttl": lives, "ttl_left": lives}
    where = {"channel_id": source["channel_id"]}
    for member in tx.select("channel_members", where, order_by="position"):
        tx.insert("channel_members", {**member, "channel_id": new_channel_id})
    return row


def _copy_log(
    tx: Transaction, context: HubContext, source: ChannelSnapshot, row: Row, until: int
) -> ChannelTransaction:
    """Write the fork's log and row; returns the transaction that continues it."""
    adapter, source_id = source.adapter, source.metadata.channel_id
    state = adapter.initial_state(source.metadata)
    new_ids: dict[str, str] = {}
    seq, spoken = 0, 0
    while seq < until:
        for place, envelope in log.read_from(tx, source_id, seq, min(_PAGE, until - seq)):
            copy = _copy_of(envelope, row["channel_id"], new_ids)
            new_ids[envelope.envelope_id] = copy.envelope_id
            state, seq = adapter.fold(copy, state), place
            spoken += is_turn(copy)
            tx.insert("envelopes", _log_row(copy, place, tx.now))
    row |= {"seq": seq, "spoken": spoken, "folded": state_text(adapter.state_to_dict(state))}
    tx.insert("channels", row)
    return ChannelTransaction(tx, context, row)


def _copy_of(envelope: Envelope, channel_id: str, new_ids: Mapping[str, str]) -> Envelope:
    data = envelope.to_dict()
    cause = envelope.causation_id
    data |= {"channel_id": channel_id, "envelope_id": new_secret_id("env")}
    data |= {"causation_id": new_ids.get(cause, cause) if cause is not None else None}
    return Envelope.from_dict(data)


def _log_row(envelope: Envelope, seq: int, now: float) -> Row:
    audience = envelope.audience
    return {
        "channel_id": envelope.channel_id,
        "seq": seq,
        "envelope_id": envelope.envelope_id,
        "sender_id": envelope.sender_id,
        "event_type": envelope.event_type,
        "causation_id": envelope.causation_id,
        "idempotency_key": envelope.idempotency_key,
        "turn_id": None,
        "at": now,
        "audience": None if audience is None else json.dumps(audience),
        "body": envelope.to_json(),
    }


def _writes(tx: Transaction, turn_id: str) -> list[Row]:
    rows = tx.select("calls", {"run_id": turn_id, "effects": "write"}, order_by="started_at")
    return [row for row in rows if row["ending"] not in ("aborted", "no-effect")]


def _write(row: Row) -> dict[str, Any]:
    found = {name: row[name] for name in ("call_key", "tool", "run_id", "ending")}
    return found | {"started_at": iso(row["started_at"])}


def _thread(row: Row) -> str:
    return conversation_key(row["tenant"] or "", row["channel_id"])
