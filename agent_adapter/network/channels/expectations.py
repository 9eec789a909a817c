"""Deadlines: written with what they are about, fired once, standing still while a turn is parked.

`turn_within` and `reply_within` are about a turn, `acks_within` about an invitation, `max_silence`
about the whole channel. Of several deadlines of a turn only the next is a row: when it is told,
the one after it is written. A sweep looks at an index of what is due and at nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.store.base import Row, Transaction

ACKS = "acks_within"
SILENCE = "max_silence"
INVITE_TIMEOUT = "invite_timeout"

_OF_TURN = ("turn_within", "reply_within")
_SECONDS = 600.0
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Deadline:
    """One expectation of a channel, ready to be written: `position` is its place among them.

    `applies_to` are ids; `None` is everybody.
    """

    position: int
    name: str
    handler: str
    seconds: float
    params: str
    applies_to: frozenset[str] | None = None

    def concerns(self, agent_id: str | None) -> bool:
        """Whether it is about this participant."""
        return self.applies_to is None or agent_id in self.applies_to


def deadlines_of(metadata: ChannelMetadata) -> tuple[Deadline, ...]:
    """The expectations of a channel, the soonest first."""
    found = []
    for position, item in enumerate(metadata.manifest.expectations):
        marks = None if item.applies_to is None else set(item.applies_to)
        ids = None if marks is None else frozenset(_marked(metadata, marks))
        seconds = float(item.params.get("seconds", _SECONDS))
        params = json.dumps(item.params)
        found.append(Deadline(position, item.name, item.on_violation, seconds, params, ids))
    return tuple(sorted(found, key=lambda item: item.seconds))


def of_turn(
    tx: Transaction, deadlines: Sequence[Deadline], channel_id: str, n: int, agent_id: str
) -> None:
    """Write the first deadline of the channel's `n`th turn, which is `agent_id`'s."""
    for item in deadlines:
        if item.name in _OF_TURN and item.concerns(agent_id):
            _write(tx, item, channel_id, n, agent_id, tx.now + item.seconds)
            return


def next_of(tx: Transaction, deadlines: Sequence[Deadline], told: Row) -> None:
    """Write the deadline of the same turn that comes after `told`."""
    passed = False
    for item in deadlines:
        if item.position == told["position"]:
            passed, before = True, item.seconds
        elif passed and item.name in _OF_TURN and item.concerns(told["agent_id"]):
            # Counted from the other one, so that pauses count for both.
            due_at = told["due_at"] + item.seconds - before
            _write(tx, item, told["channel_id"], told["turn"], told["agent_id"], due_at)
            return


def stop_turn(tx: Transaction, channel_id: str, n: int) -> None:
    """The turn has ended: nothing is expected of it."""
    tx.delete("expectations", {"channel_id": channel_id, "turn": n})


def of_channel(
    tx: Transaction, deadlines: Sequence[Deadline], channel_id: str, ack_timeout: float | None
) -> None:
    """Write the deadlines of a channel that has just been opened: those of its invitation."""
    for item in deadlines:
        if item.name == ACKS:
            _write(tx, item, channel_id, 0, None, tx.now + item.seconds)
    if ack_timeout is not None:
        params = json.dumps({"seconds": ack_timeout})
        limit = Deadline(len(deadlines), ACKS, INVITE_TIMEOUT, ack_timeout, params)
        _write(tx, limit, channel_id, 0, None, tx.now + ack_timeout)


def stop_acks(tx: Transaction, channel_id: str) -> None:
    """The invitation is answered."""
    tx.delete("expectations", {"channel_id": channel_id, "turn": 0, "name": ACKS})


def of_silence(tx: Transaction, deadlines: Sequence[Deadline], channel_id: str) -> None:
    """Somebody said something: silence is counted from now on."""
    for item in deadlines:
        if item.name == SILENCE:
            key = {"channel_id": channel_id, "turn": 0, "position": item.position}
            tx.delete("expectations", key)
            _write(tx, item, channel_id, 0, None, tx.now + item.seconds)


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
    item: Deadline,
    channel_id: str,
    n: int,
    agent_id: str | None,
    due_at: float,
) -> None:
    row: Row = {
        "channel_id": channel_id,
        "turn": n,
        "position": item.position,
        "name": item.name,
        "handler": item.handler,
        "agent_id": agent_id,
        "params": item.params,
        "due_at": due_at,
    }
    tx.insert("expectations", row)


def _marked(metadata: ChannelMetadata, marks: set[str]) -> Iterator[str]:
    """Ids of those whose id or role is among `marks`."""
    for participant in metadata.participants:
        if participant.agent_id in marks or participant.role.value in marks:
            yield participant.agent_id


def _key(row: Row) -> Row:
    return {name: row[name] for name in ("channel_id", "turn", "position")}
