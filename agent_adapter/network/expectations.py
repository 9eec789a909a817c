"""Deadlines: written with what they are about, fired once, standing still while a turn is parked.

`turn_within` and `reply_within` are about a turn, `acks_within` about an invitation, `max_silence`
about the whole channel. A sweep looks at an index of what is due and at nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from agent_adapter.network.channel import ChannelMetadata, Expectation
from agent_adapter.store.base import Row, Transaction

__all__ = [
    "ACKS",
    "due",
    "fire",
    "has_silence",
    "of_channel",
    "of_silence",
    "of_turn",
    "pause",
    "shift",
    "stop_acks",
    "stop_turn",
]

ACKS = "acks_within"
SILENCE = "max_silence"
_OF_TURN = ("turn_within", "reply_within")
_AT_ONCE = 200


def of_turn(tx: Transaction, metadata: ChannelMetadata, n: int, agent_id: str) -> None:
    """Write the deadlines of the channel's `n`th turn, which is `agent_id`'s."""
    for position, item in enumerate(metadata.manifest.expectations):
        if item.name in _OF_TURN and _applies(item, metadata, agent_id):
            _write(tx, metadata.channel_id, n, position, item, agent_id)


def stop_turn(tx: Transaction, channel_id: str, n: int) -> None:
    """The turn has ended: nothing is expected of it."""
    tx.delete("expectations", {"channel_id": channel_id, "turn": n})


def of_channel(tx: Transaction, metadata: ChannelMetadata, ack_timeout: float | None) -> None:
    """Write the deadlines of a channel that has just been opened: those of its invitation."""
    for position, item in enumerate(metadata.manifest.expectations):
        if item.name == ACKS:
            _write(tx, metadata.channel_id, 0, position, item, None)
    if ack_timeout is not None:
        limit = Expectation(ACKS, "invite_timeout", {"seconds": ack_timeout})
        _write(tx, metadata.channel_id, 0, len(metadata.manifest.expectations), limit, None)


def stop_acks(tx: Transaction, channel_id: str) -> None:
    """The invitation is answered."""
    tx.delete("expectations", {"channel_id": channel_id, "turn": 0, "name": ACKS})


def of_silence(tx: Transaction, metadata: ChannelMetadata) -> None:
    """Somebody said something: silence is counted from now on."""
    for position, item in enumerate(metadata.manifest.expectations):
        if item.name == SILENCE:
            key = {"channel_id": metadata.channel_id, "turn": 0, "position": position}
            tx.delete("expectations", key)
            _write(tx, metadata.channel_id, 0, position, item, None)


def has_silence(metadata: ChannelMetadata) -> bool:
    """Whether the channel's type limits silence."""
    return any(item.name == SILENCE for item in metadata.manifest.expectations)


def pause(tx: Transaction, channel_id: str, n: int) -> None:
    """The turn is parked: its clocks stand still, with the seconds they have left."""
    where = {"channel_id": channel_id, "turn": n, "fired_at": None}
    for row in tx.select("expectations", where):
        if row["due_at"] is not None:
            left = max(0.0, row["due_at"] - tx.now)
            tx.update("expectations", _key(row), {"due_at": None, "left": left})


def shift(tx: Transaction, seconds: float) -> int:
    """Add the time that no hub was there to every deadline that runs; how many there were."""
    rows = tx.select("expectations", {"fired_at": None, "due_at !=": None})
    for row in rows:
        tx.update("expectations", _key(row), {"due_at": row["due_at"] + seconds})
    return len(rows)


def due(tx: Transaction) -> list[Row]:
    """Deadlines that have passed and not been told, oldest first, a bounded number."""
    where = {"fired_at": None, "due_at <=": tx.now}
    return tx.select("expectations", where, order_by="due_at", limit=_AT_ONCE)


def fire(tx: Transaction, row: Row) -> bool:
    """Mark the deadline as told; `False` if it was told, moved or answered meanwhile."""
    where = _key(row) | {"fired_at": None, "due_at": row["due_at"]}
    return bool(tx.update("expectations", where, {"fired_at": tx.now}))


def _write(
    tx: Transaction,
    channel_id: str,
    n: int,
    position: int,
    item: Expectation,
    agent_id: str | None,
) -> None:
    seconds = float(item.params.get("seconds", 600))
    row: Row = {"channel_id": channel_id, "turn": n, "position": position, "name": item.name}
    row |= {"handler": item.on_violation, "agent_id": agent_id, "params": json.dumps(item.params)}
    tx.insert("expectations", row | {"due_at": tx.now + seconds})


def _applies(item: Expectation, metadata: ChannelMetadata, agent_id: str) -> bool:
    if item.applies_to is None:
        return True
    return bool(set(item.applies_to) & set(_marks(metadata, agent_id)))


def _marks(metadata: ChannelMetadata, agent_id: str) -> Iterable[str]:
    yield agent_id
    for participant in metadata.participants:
        if participant.agent_id == agent_id:
            yield participant.role.value


def _key(row: Row) -> Row:
    return {name: row[name] for name in ("channel_id", "turn", "position")}
