"""A channel as people read it: what was said, whose turn it is and why it waits, who set what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agent_adapter.flow.context_vars import updates_of
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE,
    EV_CHANNEL_INVITE_ACK,
    EV_CHANNEL_OPENED,
    EV_CONTEXT_SET,
    EV_PACKET,
    EV_TEXT,
)
from agent_adapter.network.channels.log import stored
from agent_adapter.network.channels.reports import LogLine, text_line
from agent_adapter.store.base import Transaction

_PROTOCOL = (EV_CHANNEL_INVITE, EV_CHANNEL_INVITE_ACK, EV_CHANNEL_OPENED)
_LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGroup:
    """Entries that are shown together: one that says something, or several of the protocol."""

    protocol: bool
    lines: tuple[LogLine, ...]

    @property
    def kinds(self) -> str:
        """What the entries are, each kind once."""
        kinds = (line.envelope.event_type.removeprefix("ag2.") for line in self.lines)
        return ", ".join(dict.fromkeys(kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One thing that a parked turn waits for: the id of an approval, or the key of a call."""

    id: str
    tool: str
    is_approval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The way that a channel took: who spoke, and who spoke after whom (agent ids)."""

    spoke: frozenset[str]
    steps: frozenset[tuple[str, str]]


def grouped(lines: Iterable[LogLine]) -> list[LogGroup]:
    """The entries in their order, those of the protocol folded together."""
    groups: list[LogGroup] = []
    for line in lines:
        protocol = _is_protocol(line)
        if protocol and groups and groups[-1].protocol:
            groups[-1] = LogGroup(protocol=True, lines=(*groups[-1].lines, line))
        else:
            groups.append(LogGroup(protocol=protocol, lines=(line,)))
    return groups


def _is_protocol(line: LogLine) -> bool:
    return line.envelope.event_type in _PROTOCOL or not text_line(line.envelope).strip()


def turn_sentence(turn: Mapping[str, Any] | None, *, is_person: bool, served: bool) -> str:
    """Why the channel does not go on by itself; empty if nothing is under way."""
    if turn is None:
        return ""
    who, again = turn["of"], ""
    if turn["attempts"] and turn["attempts"] > 1:
        again = f", attempt {turn['attempts']}"
    match turn["state"]:
        case "due" if is_person:
            return f"waits for a message of {who}"
        case "due":
            return f"{who} is about to begin{again}" if served else f"{who} waits for a hub"
        case "running":
            return f"{who} is at work{again}"
        case "parked":
            return f"{who} waits for what is named here"
    return f"{who}: {turn['state']}" + (f" ({turn['reason']})" if turn["reason"] else "")


def waits_of(tx: Transaction, turn: Mapping[str, Any] | None) -> list[Waiting]:
    """What a parked turn waits for, with the tools."""
    found = []
    for id in (turn or {}).get("waits_for", ()):
        asked = tx.get("approvals", id)
        row = asked or tx.get("calls", id) or {}
        found.append(Waiting(id=id, tool=row.get("tool") or "", is_approval=asked is not None))
    return found


def setters(
    tx: Transaction, channel_id: str, keys: Sequence[str], names: Mapping[str, str]
) -> dict[str, tuple[str, int]]:
    """Who gave each variable its value, and with which entry of the log.

    A variable that is missing was given at the opening, or before the newest 1,000 changes.
    """
    where = {"channel_id": channel_id, "event_type in": [EV_CONTEXT_SET, EV_PACKET]}
    rows = tx.select("envelopes", where, order_by="seq", descending=True, limit=_LOOKED_AT)
    found: dict[str, tuple[str, int]] = {}
    for row in rows:
        if len(found) == len(keys):
            break
        for key in updates_of(stored(row["body"])).get("set") or {}:
            if key in keys and key not in found:
                found[key] = names.get(row["sender_id"], row["sender_id"]), row["seq"]
    return found


def path_of(tx: Transaction, channel_id: str) -> Path:
    """The way that the newest 1,000 messages took."""
    where = {"channel_id": channel_id, "event_type in": [EV_TEXT, EV_PACKET]}
    rows = tx.select("envelopes", where, order_by="seq", descending=True, limit=_LOOKED_AT)
    senders = [str(row["sender_id"]) for row in reversed(rows)]
    return Path(spoke=frozenset(senders), steps=frozenset(pairwise(senders)))
