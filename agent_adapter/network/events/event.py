"""`HubEvent`: one thing that happened in a hub, and the kinds of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_adapter.core.records import Record
from agent_adapter.flow.envelope import Envelope

ENVELOPE_POSTED = "envelope_posted"
ENVELOPE_REJECTED = "envelope_rejected"
DISPATCH_FAILED = "dispatch_failed"
TURN_DUE = "turn_due"
TURN_STARTED = "turn_started"
TURN_DONE = "turn_done"
TURN_DROPPED = "turn_dropped"
TURN_FAILED = "turn_failed"
TURN_STUCK = "turn_stuck"
EXPECTATION_FIRED = "expectation_fired"
TASK_PROGRESS = "task_progress"
INBOX_PRESSURE = "inbox_pressure"

_LONGEST = 18

TURN_ENDS = (TURN_DONE, TURN_DROPPED)
"""The kinds that the end of a turn may have; a failed attempt is a `turn_failed`."""

EVENT_KINDS: tuple[str, ...] = (
    ENVELOPE_POSTED,
    ENVELOPE_REJECTED,
    DISPATCH_FAILED,
    "channel_created",
    "channel_closed",
    "channel_expired",
    "channel_reopened",
    "channel_forked",
    "channel_altered",
    "agent_registered",
    "agent_unregistered",
    "resume_set",
    "rule_set",
    "skill_set",
    TURN_DUE,
    TURN_STARTED,
    "turn_parked",
    "turn_silent",
    TURN_FAILED,
    TURN_STUCK,
    *TURN_ENDS,
    EXPECTATION_FIRED,
    "task_started",
    TASK_PROGRESS,
    "task_completed",
    "task_failed",
    "task_expired",
    "task_cancelled",
    "task_mirror_failed",
    INBOX_PRESSURE,
    "approval_waiting",
    "call_in_doubt",
    "call_in_doubt",
)
"""The kinds of a hub's own events; a record that a program appends to the audit log adds its own
kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEvent(Record):
    """One thing that happened in a hub.

    Attributes:
        kind: one of `EVENT_KINDS`, or the kind of a record of the program's own.
        cursor: its place in the stream; `subscribe(after=cursor)` continues behind it.
        at: when it happened, in ISO 8601.
        channel_id: the channel that it concerns.
        agent_id: the participant that it concerns: a sender, the one whose turn it is.
        turn_id: the turn that it concerns.
        envelope_id: the envelope that it concerns.
        task_id: the task that it concerns.
        payload: the rest, as JSON values.
    """

    kind: str
    cursor: str
    at: str
    channel_id: str | None = None
    agent_id: str | None = None
    turn_id: str | None = None
    envelope_id: str | None = None
    task_id: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def envelope(self) -> Envelope | None:
        """The envelope of an `envelope_posted` or `envelope_rejected`."""
        data = self.payload.get("envelope")
        return None if data is None else Envelope.from_dict(data)


def checked_kinds(kinds: str | Iterable[str] | None) -> frozenset[str] | None:
    """The kinds that are asked for; `ValueError` names the kind that was probably meant."""
    if kinds is None:
        return None
    asked = frozenset([kinds] if isinstance(kinds, str) else kinds)
    for kind in asked - set(EVENT_KINDS):
        near = difflib.get_close_matches(str(kind), EVENT_KINDS, n=1, cutoff=0.85)
        if near:
            raise ValueError(f"a hub has no events {kind!r}; did you mean {near[0]!r}?")
    return asked


def position_of(cursor: str) -> int:
    """The position that a cursor names; the empty one is the begin of the stream."""
    if cursor == "":
        return 0
    if cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST:
        return int(cursor)
    raise ValueError(
        f"{cursor!r:.80} is no cursor: pass the `cursor` of an event, or '' for everything kept"
    )
