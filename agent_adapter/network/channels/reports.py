"""Reports on channels, read from the store: no hub has to run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.workflow import packet_text
from agent_adapter.network.channels.forking import ReplayReport, replay
from agent_adapter.network.channels.log import read_from
from agent_adapter.network.channels.snapshot import channel_row
from agent_adapter.network.channels.transaction import HubContext
from agent_adapter.store.base import Row, Transaction

ONGOING = ("pending", "active", "closing")
"""States of channels that have not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLine:
    """One channel in a list; times are seconds since the epoch, participants are names."""

    channel_id: str
    type: str
    state: str
    participants: tuple[str, ...]
    turns: int
    expected: str | None
    created_at: float
    close_reason: str | None
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReport:
    """Everything about one channel except its messages.

    `turn` describes the latest turn: its participant, state, attempts and what it waits for. While
    the channel's clocks stand still it has no `expires_at`, and `ttl_left` seconds remain.
    """

    line: ChannelLine
    creator: str
    parent_channel_id: str | None
    expires_at: float | None
    ttl_left: float | None
    entries: int
    labels: Mapping[str, str]
    context_vars: Mapping[str, Any]
    turn: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One entry of a channel's log, and its sender's name."""

    seq: int
    sender: str
    envelope: Envelope


def list_lines(
    tx: Transaction,
    states: Sequence[str] | None = ONGOING,
    limit: int = 50,
    tenant: str | None = None,
) -> list[ChannelLine]:
    """Channels, the newest first; `states=None` is all, `tenant=None` those of every tenant."""
    where: dict[str, Any] = {} if states is None else {"state in": list(states)}
    where |= {} if tenant is None else {"tenant": tenant}
    rows = tx.select("channels", where, order_by="created_at", descending=True, limit=limit)
    return [line_of(tx, row) for row in rows]


def report_of(tx: Transaction, channel_id: str) -> ChannelReport:
    """The report on one channel; `NotFoundError` for an unknown id."""
    row = channel_row(tx, channel_id)
    names = _names(tx, channel_id)
    folded = json.loads(row["folded"] or "{}")
    return ChannelReport(
        line=line_of(tx, row),
        creator=_named(names, row["creator_id"]) or "",
        parent_channel_id=row["parent_channel_id"],
        expires_at=row["expires_at"],
        ttl_left=row["ttl_left"],
        entries=row["seq"],
        labels=json.loads(row["labels"] or "{}"),
        context_vars=folded.get("context_vars", {}),
        turn=_turn(tx, row["turn_id"], names),
    )


def log_lines(
    tx: Transaction, channel_id: str, *, newest: int = 20, since: int | None = None
) -> list[LogLine]:
    """The newest entries of a channel's log, or those after the entry `since`; oldest first."""
    last = channel_row(tx, channel_id)["seq"]
    names = _names(tx, channel_id)
    start = max(0, last - newest) if since is None else since
    return [
        LogLine(
            seq=seq, sender=names.get(envelope.sender_id, envelope.sender_id), envelope=envelope
        )
        for seq, envelope in read_from(tx, channel_id, start, max(1, last - start))
    ]


def replayed(tx: Transaction, channel_id: str) -> ReplayReport:
    """Fold the channel's log again and compare the result with the stored state."""
    return replay(
        tx, HubContext(AdapterRegistry(), is_person=_nobody, is_privileged=_nobody), channel_id
    )


def text_line(envelope: Envelope) -> str:
    """An entry in one line: its text, its change of variables, or its reason."""
    data = envelope.event_data
    if isinstance(data.get("text"), str):
        return str(data["text"])
    if "routing" in data:
        routing = data["routing"] or {}
        if routing.get("kind") == "finish":
            return f"[Finished] {routing.get('summary') or routing.get('reason') or ''}".strip()
        return packet_text(envelope) or ""
    changes = [f"{key} = {json.dumps(value)}" for key, value in (data.get("set") or {}).items()]
    changes += [f"{key} removed" for key in data.get("delete") or ()]
    return ", ".join(changes) or str(data.get("reason") or "")


def line_of(tx: Transaction, row: Row) -> ChannelLine:
    """A channel's row as a line of a list."""
    names = _names(tx, row["channel_id"])
    return ChannelLine(
        channel_id=row["channel_id"],
        type=row["type"],
        state=row["state"],
        participants=tuple(names.values()),
        turns=row["spoken"] or 0,
        expected=_named(names, row["expected"]),
        created_at=row["created_at"],
        close_reason=row["close_reason"],
        paused=bool(row["paused"]),
    )


def _names(tx: Transaction, channel_id: str) -> dict[str, str]:
    members = tx.select("channel_members", {"channel_id": channel_id}, order_by="position")
    return {row["agent_id"]: row["name"] or row["agent_id"] for row in members}


def _named(names: Mapping[str, str], agent_id: str | None) -> str | None:
    return None if agent_id is None else names.get(agent_id, agent_id)


def _turn(tx: Transaction, turn_id: str | None, names: Mapping[str, str]) -> dict[str, Any] | None:
    row = tx.get("turns", turn_id) if turn_id is not None else None
    if row is None:
        return None
    return {
        "turn_id": row["turn_id"],
        "of": _named(names, row["agent_id"]),
        "state": row["state"],
        "attempts": row["attempt"],
        "reason": row["reason"],
        "waits_for": _waits(tx, row) if row["state"] == "parked" else [],
    }


def _waits(tx: Transaction, turn: Row) -> list[str]:
    return [row["waits_for"] for row in tx.select("turn_waits", {"turn_id": turn["turn_id"]})]


def _nobody(agent_id: str) -> bool:
    return False
