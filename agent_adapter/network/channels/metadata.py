"""Records of a channel: its type, participants and lifecycle state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent_adapter.core.records import Record


class ChannelState(StrEnum):
    """The lifecycle state of a channel."""

    PENDING = "pending"
    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"
    EXPIRED = "expired"

    @property
    def is_terminal(self) -> bool:
        """Whether the channel has ended and accepts nothing."""
        return self in TERMINAL_STATES


TERMINAL_STATES = frozenset({ChannelState.CLOSED, ChannelState.EXPIRED})
"""The states of a channel that has ended."""


class ParticipantRole(StrEnum):
    """The role of a participant: the opener, the only other one, or one of several."""

    INITIATOR = "initiator"
    RESPONDENT = "respondent"
    PARTICIPANT = "participant"


@dataclass(frozen=True, slots=True)
class ParticipantSchema(Record):
    """The least and greatest number of participants (`None`: no limit), and their roles."""

    min: int
    max: int | None = None
    roles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Expectation(Record):
    """A deadline of a channel type and the action when it passes.

    Attributes:
        name: the kind of deadline, such as `turn_within`.
        on_violation: the action, such as `warn` or `auto_close`.
        params: its parameters, such as `{"seconds": 120}`.
        applies_to: roles or ids; `None` applies to everybody.
    """

    name: str
    on_violation: str
    params: dict[str, Any] = field(default_factory=dict)
    applies_to: list[str] | None = None


@dataclass(frozen=True, slots=True)
class ChannelManifest(Record):
    """A channel type as data; `(type, version)` names its adapter."""

    type: str
    version: int = 1
    participants: ParticipantSchema = field(default_factory=lambda: ParticipantSchema(min=2))
    knobs_schema: dict[str, str] = field(default_factory=dict)
    default_view_policy: str = "full_transcript"
    expectations: list[Expectation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Participant(Record):
    """A participant of a channel; `order` is 0 for the opener, then the order of invitation."""

    agent_id: str
    role: ParticipantRole
    order: int
    joined_at: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ChannelMetadata(Record):
    """A snapshot of everything about a channel except its messages; see `Channel.info()`.

    Attributes:
        channel_id: its id.
        manifest: its type at the time it was opened.
        creator_id: who opened it.
        participants: in order, the opener first.
        state: its lifecycle state.
        created_at: ISO 8601 in UTC, as the other times.
        expires_at: when its lifetime ends.
        closed_at: when it ended.
        close_reason: why it ended.
        parent_channel_id: the channel it was opened from.
        knobs: the settings of its type, such as `{"graph": …}`.
        labels: notes of the opener; `intent` is one of them.
        required_acks: how many invitees must agree; `None` is all.
        pending_acks: ids of invitees who have not answered.
        rejected_by: ids of invitees who declined.
    """

    channel_id: str
    manifest: ChannelManifest
    creator_id: str
    participants: list[Participant]
    state: ChannelState
    created_at: str
    expires_at: str | None = None
    closed_at: str | None = None
    close_reason: str = ""
    parent_channel_id: str | None = None
    knobs: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    required_acks: int | None = None
    pending_acks: list[str] = field(default_factory=list)
    rejected_by: list[str] = field(default_factory=list)

    def participant_ids(self) -> list[str]:
        """The ids of the participants, in their order."""
        return [item.agent_id for item in self.participants]

    def names(self) -> dict[str, str]:
        """The name of each participant by id; the id itself if the name is unknown."""
        return {item.agent_id: item.name or item.agent_id for item in self.participants}

    def ids_by_name(self) -> dict[str, str]:
        """The id of each participant by name."""
        return {item.name or item.agent_id: item.agent_id for item in self.participants}

    def is_terminal(self) -> bool:
        """Whether the channel has ended and accepts nothing."""
        return self.state in TERMINAL_STATES
