"""`Envelope`: one message of a channel, and the names of its events.

The event names and the fields are those of AG2's network, so that the logs of either can be read
by the other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from pydantic import ConfigDict, StrictInt, ValidationError

from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.records import Record, StrictModel
from agent_adapter.flow.wire import json_copy, wire_problems

EV_TEXT = "ag2.msg.text"
EV_PACKET = "ag2.packet"
EV_CONTEXT_SET = "ag2.context.set"
EV_CHANNEL_INVITE = "ag2.channel.invite"
EV_CHANNEL_INVITE_ACK = "ag2.channel.invite.ack"
EV_CHANNEL_INVITE_REJECT = "ag2.channel.invite.reject"
EV_CHANNEL_OPENED = "ag2.channel.opened"
EV_CHANNEL_CLOSED = "ag2.channel.closed"
EV_CHANNEL_EXPIRED = "ag2.channel.expired"
EV_EXPECTATION_VIOLATED = "ag2.expectation.violated"
EV_TASK_CANCEL_REQUEST = "ag2.task.cancel_request"
EV_TASK_CANCELLED = "ag2.task.cancelled"

Priority = Literal["background", "normal", "urgent"]
"""The urgency of a message for its receiver; it does not affect the order of the log."""

TURN_EVENTS = frozenset({EV_TEXT, EV_PACKET})
"""The events that take a turn."""


@dataclass(frozen=True, slots=True)
class Envelope(Record):
    """One JSON message of a channel; a channel's state is the fold of its accepted envelopes.

    Attributes:
        channel_id: the channel it belongs to.
        sender_id: the participant's id.
        audience: ids of those who may see it; `None` is everybody in the channel.
        event_type: one of the `EV_…` names, or a custom name.
        event_data: the JSON content. A text is `{"text"}`; a packet is `{"routing",
            "context_updates", "body"}`; a context change is `{"set", "delete"}`.
        envelope_id: set when the message is accepted.
        task_id: the task it reports about.
        causation_id: the envelope that it answers.
        trace_id: the trace that it belongs to.
        priority: see `Priority`.
        depth: the number of delegations that led to it.
        idempotency_key: messages of one sender with equal keys are accepted once.
        created_at: ISO 8601 in UTC, set when the message is accepted.
        ttl_seconds: kept for logs of AG2; channels accept only `None`.
    """

    channel_id: str
    sender_id: str
    audience: list[str] | None
    event_type: str
    event_data: dict[str, Any]
    envelope_id: str = ""
    task_id: str | None = None
    causation_id: str | None = None
    trace_id: str | None = None
    priority: Priority = "normal"
    depth: StrictInt = 0
    idempotency_key: str | None = None
    created_at: str = ""
    ttl_seconds: StrictInt | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as copied JSON values."""
        data = {name: getattr(self, name) for name in _FIELDS}
        data["event_data"] = json_copy(self.event_data, "Envelope.event_data", ProtocolError)
        data["audience"] = None if self.audience is None else list(self.audience)
        return data

    def to_json(self) -> str:
        """`to_dict` as JSON text with sorted keys: equal envelopes give equal text."""
        data = {name: getattr(self, name) for name in _FIELDS}
        try:
            return _ENCODER.encode(data)
        except (TypeError, ValueError) as exc:
            raise ProtocolError(f"Envelope.event_data is not JSON: {exc}") from exc

    @classmethod
    def from_json(cls, text: str | bytes) -> Envelope:
        """The envelope that `to_json` wrote."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ProtocolError(f"an envelope is one JSON object: {exc}") from exc
        return cls.from_dict(data)


def is_turn(envelope: Envelope) -> bool:
    """Whether `envelope` takes a turn: a text or a packet does."""
    return envelope.event_type in TURN_EVENTS


def visible_to(envelope: Envelope, participant_id: str) -> bool:
    """Whether `participant_id` may see `envelope`: its sender, everybody, or those listed."""
    audience = envelope.audience
    return audience is None or participant_id == envelope.sender_id or participant_id in audience


class _Updates(StrictModel):
    set: dict[str, Any] | None = None
    delete: list[str] | None = None


class _Routing(StrictModel):
    # Further fields are allowed: AG2 writes some of its own.
    model_config = ConfigDict(extra="ignore")

    kind: Literal["text", "handoff", "finish"] = "text"
    tool: str | None = None
    target: str | None = None
    reason: str | None = None
    summary: str | None = None


class _Packet(StrictModel):
    model_config = ConfigDict(extra="ignore")

    context_updates: _Updates | None = None
    routing: _Routing | None = None
    body: str | None = None


_EVENT_DATA: dict[str, type[StrictModel]] = {EV_CONTEXT_SET: _Updates, EV_PACKET: _Packet}


def envelope_problems(envelope: Envelope) -> list[str]:
    """The malformed parts of a packet or context change, one line each.

    `fold` ignores such parts; a hub refuses envelopes that have any.
    """
    model = _EVENT_DATA.get(envelope.event_type)
    if model is None:
        return []
    try:
        model.model_validate(envelope.event_data)
    except ValidationError as exc:
        return wire_problems(exc, "event_data")
    return []


_ENCODER = json.JSONEncoder(sort_keys=True, allow_nan=False)
_FIELDS = tuple(field.name for field in fields(Envelope))
