"""Deadlines of a channel: each is a row, fires once, and stands still while a turn is parked.

`turn_within` and `reply_within` apply to a turn, `acks_within` to an invitation, `max_silence` to
the whole channel, `parked_within` to a turn that waits for a person's decision. A turn has at most
one row of each kind: when its deadline fires, the next one is written. A sweep therefore reads one
index, of deadlines that are due.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network.channels.metadata import ChannelManifest, ChannelMetadata
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.channel_clocks import PARKED

ACKS = "acks_within"
SILENCE = "max_silence"
INVITE_TIMEOUT = "invite_timeout"

_OF_TURN = ("turn_within", "reply_within")
_NAMES = (ACKS, SILENCE, PARKED, *_OF_TURN)
_ACTIONS = ("audit", "warn", "notify_channel", "auto_close", "hide", "remove")
_SECONDS = 600.0
_PARKED_SECONDS = 3600.0
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Deadline:
    """One expectation of a channel; `position` is its index in the manifest.

    `applies_to` holds participant ids; `None` applies to everybody.
    """

    position: int
    name: str
    handler: str
    seconds: float
    params: str
    applies_to: frozenset[str] | None = None

    def concerns(self, agent_id: str | None) -> bool:
        """Whether it applies to this participant."""
        return self.applies_to is None or agent_id in self.applies_to


def check_expectations(
    manifest: ChannelManifest,
    evaluators: Collection[str] = (),
    handlers: Collection[str] = (),
) -> None:
    """Raises `ProtocolError` for an expectation that no hub would act on.

    `evaluators` and `handlers` are the names of those that the program has registered.
    Not called for the manifest of a stored channel: a log of an older version must open.
    """
    for item in manifest.expectations:
        seconds = item.params.get("seconds", _SECONDS)
        if item.name not in _NAMES and item.name not in evaluators:
            known = ", ".join((*_NAMES, *sorted(evaluators)))
            problem = f"is unknown; known: {known} (register_expectation_evaluator adds one)"
        elif item.on_violation not in _ACTIONS and item.on_violation not in handlers:
            known = ", ".join((*_ACTIONS, *sorted(handlers)))
            problem = f"has the unknown action {item.on_violation!r}; known: {known}"
        elif item.name in evaluators:
            continue  # its parameters are its evaluator's
        elif unknown := sorted(set(item.params) - {"seconds"}):
            problem = f"has the unknown parameter {', '.join(unknown)}; it takes seconds"
        elif type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            problem = f"has seconds={seconds!r:.80}: give a number, 0 or more"
        else:
            continue
        raise ProtocolError(
            f"the channel type {manifest.type!r}: the expectation {item.name!r} {problem}"
        )


def deadlines_of(
    metadata: ChannelMetadata, evaluators: Collection[str] = ()
) -> tuple[Deadline, ...]:
    """The expectations of a channel that are deadlines, the shortest limit first.

    Those of the names in `evaluators` are judged by the program's own.
    """
    found = []
    for position, item in enumerate(metadata.manifest.expectations):
        if item.name in evaluators:
            continue
        marks = None if item.applies_to is None else set(item.applies_to)
        ids = None if marks is None else frozenset(_marked(metadata, marks))
        seconds = float(item.params.get("seconds", _SECONDS))
        params = json.dumps(item.params)
        found.append(Deadline(position, item.name, item.on_violation, seconds, params, ids))
    if not any(item.name == PARKED for item in found):
        params = json.dumps({"seconds": _PARKED_SECONDS})
        # One place is left for the invitation's own limit.
        place = len(metadata.manifest.expectations) + 1
        found.append(Deadline(place, PARKED, "warn", _PARKED_SECONDS, params))
    return tuple(sorted(found, key=lambda item: item.seconds))


def of_parked(
    tx: Transaction, deadlines: Sequence[Deadline], channel_id: str, n: int, agent_id: str
) -> None:
    """Write the first deadline for the decision that the parked turn number `n` waits for."""
    for item in deadlines:
        if item.name == PARKED and item.concerns(agent_id):
            _write(tx, item, channel_id, n, agent_id, tx.now + item.seconds)
            return


def of_turn(
    tx: Transaction, deadlines: Sequence[Deadline], channel_id: str, n: int, agent_id: str
) -> None:
    """Write the first deadline of turn number `n`, which `agent_id` is to take."""
    for item in deadlines:
        if item.name in _OF_TURN and item.concerns(agent_id):
            _write(tx, item, channel_id, n, agent_id, tx.now + item.seconds)
            return


def next_of(tx: Transaction, deadlines: Sequence[Deadline], fired: Row) -> None:
    """Write the deadline of the same turn that follows `fired`."""
    passed = False
    names = (PARKED,) if fired["name"] == PARKED else _OF_TURN
    for item in deadlines:
        if item.position == fired["position"]:
            passed, before = True, item.seconds
        elif passed and item.name in names and item.concerns(fired["agent_id"]):
            # Counted from the fired deadline and not from now: pauses that moved it count here too.
            due_at = fired["due_at"] + item.seconds - before
            _write(tx, item, fired["channel_id"], fired["turn"], fired["agent_id"], due_at)
            return


def stop_turn(tx: Transaction, channel_id: str, n: int) -> None:
    """Remove the deadlines of a turn that has ended."""
    tx.delete("expectations", {"channel_id": channel_id, "turn": n})


def of_channel(
    tx: Transaction, deadlines: Sequence[Deadline], channel_id: str, ack_timeout: float | None
) -> None:
    """Write the deadlines for answering the invitation of a channel that was just opened."""
    for item in deadlines:
        if item.name == ACKS:
            _write(tx, item, channel_id, 0, None, tx.now + item.seconds)
    if ack_timeout is not None:
        params = json.dumps({"seconds": ack_timeout})
        limit = Deadline(len(deadlines), ACKS, INVITE_TIMEOUT, ack_timeout, params)
        _write(tx, limit, channel_id, 0, None, tx.now + ack_timeout)


def of_own(tx: Transaction, metadata: ChannelMetadata, evaluators: Collection[str]) -> None:
    """Write a row for each expectation that an evaluator of the program judges at every sweep."""
    for position, item in enumerate(metadata.manifest.expectations):
        if item.name in evaluators:
            params = json.dumps(item.params)
            own = Deadline(position, item.name, item.on_violation, 0.0, params)
            _write(tx, own, metadata.channel_id, 0, None, None)


def newly_told(
    tx: Transaction, row: Row, violators: Sequence[str], detail: Mapping[str, Any]
) -> Row | None:
    """Note whom an expectation of the program's own has fired for; `None` if for nobody new.

    A violation of the whole channel, without violators, fires once.
    """
    current = tx.get("expectations", *_key(row).values())
    if current is None:
        return None
    told = {"told": [], "owed": []} if current["told"] is None else json.loads(current["told"])
    new = [item for item in (violators or [""]) if item not in told["told"]]
    if not new:
        return None
    text = json.dumps(
        {
            "told": [*told["told"], *new],
            "owed": [item for item in new if item],
            "detail": dict(detail),
        }
    )
    values: Row = {"told": text, "handled_at": None}
    tx.update("expectations", _key(row), values)
    return current | values


def owe(tx: Transaction, row: Row, violators: Sequence[str], detail: Mapping[str, Any]) -> None:
    """Note that the program's own handler has to be called for a deadline that has fired."""
    told = {"told": list(violators), "owed": list(violators), "detail": dict(detail)}
    tx.update("expectations", _key(row), {"told": json.dumps(told)})


def stop_acks(tx: Transaction, channel_id: str) -> None:
    """Remove the deadlines of an invitation that is answered."""
    tx.delete("expectations", {"channel_id": channel_id, "turn": 0, "name": ACKS})


def of_silence(tx: Transaction, deadlines: Sequence[Deadline], channel_id: str) -> None:
    """Restart the silence deadlines after a message."""
    for item in deadlines:
        if item.name == SILENCE:
            key = {"channel_id": channel_id, "turn": 0, "position": item.position}
            tx.delete("expectations", key)
            _write(tx, item, channel_id, 0, None, tx.now + item.seconds)


def pause(tx: Transaction, channel_id: str, n: int) -> None:
    """Pause the deadlines of a turn; each row keeps its remaining seconds."""
    where = {"channel_id": channel_id, "turn": n, "fired_at": None}
    for row in tx.select("expectations", where):
        if row["due_at"] is not None:
            left = max(0.0, row["due_at"] - tx.now)
            tx.update("expectations", _key(row), {"due_at": None, "left": left})


def shift(tx: Transaction, seconds: float) -> int:
    """Move every running deadline by `seconds`, the time without a hub; returns how many."""
    rows = tx.select("expectations", {"fired_at": None, "due_at !=": None})
    for row in rows:
        tx.update("expectations", _key(row), {"due_at": row["due_at"] + seconds})
    return len(rows)


def due(tx: Transaction) -> list[Row]:
    """Passed deadlines that have not fired, oldest first, at most 200."""
    where = {"fired_at": None, "due_at <=": tx.now}
    return tx.select("expectations", where, order_by="due_at", limit=_AT_ONCE)


def fire(tx: Transaction, row: Row) -> bool:
    """Mark the deadline as fired; `False` if it has fired, moved or been removed meanwhile."""
    where = _key(row) | {"fired_at": None, "due_at": row["due_at"]}
    return bool(tx.update("expectations", where, {"fired_at": tx.now}))


def _write(
    tx: Transaction,
    item: Deadline,
    channel_id: str,
    n: int,
    agent_id: str | None,
    due_at: float | None,
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
    """Ids of the participants whose id or role is in `marks`."""
    for participant in metadata.participants:
        if participant.agent_id in marks or participant.role.value in marks:
            yield participant.agent_id


def _key(row: Row) -> Row:
    return {name: row[name] for name in ("channel_id", "turn", "position")}
