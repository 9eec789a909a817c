"""What a channel is: its type, its participants, its state of life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import ConfigDict

from agent_adapter.network.records import STRICT, record_from_dict, record_to_dict


class ChannelState(StrEnum):
    """Where a channel is in its life: invited, running, or over."""

    PENDING = "pending"
    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"
    EXPIRED = "expired"

    @property
    def is_terminal(self) -> bool:
        """Whether the channel accepts nothing any more."""
        return self in (ChannelState.CLOSED, ChannelState.EXPIRED)


class ParticipantRole(StrEnum):
    """What somebody is in a channel: who opened it, who answers, or one of several."""

    INITIATOR = "initiator"
    RESPONDENT = "respondent"
    PARTICIPANT = "participant"


@dataclass(frozen=True, slots=True)
class ParticipantSchema:
    """How many may take part (both ends included; `None` is no end), and in which roles."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    min: int
    max: int | None = None
    roles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a channel expects of its participants, and what follows when it does not happen.

    Attributes:
        name: which expectation, such as `turn_within`.
        on_violation: what follows, such as `warn` or `auto_close`.
        params: its measures, such as `{"seconds": 120}`.
        applies_to: roles or ids; `None` is everybody.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    on_violation: str
    params: dict[str, Any] = field(default_factory=dict)
    applies_to: list[str] | None = None


@dataclass(frozen=True, slots=True)
class ChannelManifest:
    """A type of channel, as data: the code that goes with it is found by `(type, version)`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    type: str
    version: int = 1
    participants: ParticipantSchema = field(default_factory=lambda: ParticipantSchema(min=2))
    knobs_schema: dict[str, str] = field(default_factory=dict)
    default_view_policy: str = "full_transcript"
    expectations: list[Expectation] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return record_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChannelManifest:
        """The manifest that `to_dict` wrote; `ProtocolError` names what does not fit."""
        return record_from_dict(cls, data)


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody in a channel; `order` is 0 for whoever opened it, then as they were listed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    agent_id: str
    role: ParticipantRole
    order: int
    joined_at: str = ""
    name: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The participant as JSON."""
        return record_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Participant:
        """The participant that `to_dict` wrote; `ProtocolError` names what does not fit."""
        return record_from_dict(cls, data)


@dataclass(frozen=True, slots=True)
class ChannelMetadata:
    """All about a channel but its messages: a snapshot, renewed by `Channel.info()`.

    Attributes:
        channel_id: its id.
        manifest: its type, as it was when the channel opened.
        creator_id: who opened it.
        participants: in their order, whoever opened it first.
        state: where it is in its life.
        created_at: ISO 8601 in UTC, as the other times.
        expires_at: when it ends of itself.
        closed_at: when it ended.
        close_reason: why it ended.
        parent_channel_id: the channel it was opened from.
        knobs: the settings of its type, such as `{"graph": …}`.
        labels: the opener's own notes; `intent` is one of them.
        required_acks: how many of those invited must agree; `None` is all.
        pending_acks: ids of those who have not answered the invitation.
        rejected_by: ids of those who declined.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

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

    def to_dict(self) -> dict[str, Any]:
        """The snapshot as JSON values of its own."""
        return record_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChannelMetadata:
        """The snapshot that `to_dict` wrote; `ProtocolError` names what does not fit."""
        return record_from_dict(cls, data)

    def participant_ids(self) -> list[str]:
        """The ids of the participants, in their order."""
        return [item.agent_id for item in self.participants]

    def names(self) -> dict[str, str]:
        """The name of each participant by id; an id stands for a name that is not known."""
        return {item.agent_id: item.name or item.agent_id for item in self.participants}

    def ids_by_name(self) -> dict[str, str]:
        """The id of each participant by name."""
        return {item.name or item.agent_id: item.agent_id for item in self.participants}

    def is_terminal(self) -> bool:
        """Whether the channel accepts nothing any more."""
        return self.state.is_terminal
