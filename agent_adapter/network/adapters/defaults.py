"""Envelopes and answers that a channel type may use as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_adapter.core.routing import Handoff
from agent_adapter.flow.envelope import EV_PACKET, EV_TEXT, Envelope


def default_build_text_envelope(
    channel_id: str,
    sender_id: str,
    text: str,
    *,
    audience: Sequence[str] | None = None,
    causation_id: str | None = None,
) -> Envelope:
    """An `EV_TEXT`."""
    return Envelope(
        channel_id=channel_id,
        sender_id=sender_id,
        audience=None if audience is None else list(audience),
        event_type=EV_TEXT,
        event_data={"text": text},
        causation_id=causation_id,
    )


def default_build_packet_envelope(
    channel_id: str,
    sender_id: str,
    body: str,
    *,
    handoff: Handoff | None = None,
    context_set: Mapping[str, Any] | None = None,
    audience: Sequence[str] | None = None,
    causation_id: str | None = None,
) -> Envelope:
    """An `EV_PACKET`, for a program that takes turns without an agent.

    `handoff` routes it, `context_set` sets variables of the channel.
    """
    data: dict[str, Any] = {"body": body}
    if handoff is not None:
        routing = {"kind": "handoff", "target": handoff.target}
        data["routing"] = routing | ({"reason": handoff.reason} if handoff.reason else {})
    if context_set:
        data["context"] = dict(context_set)
        data["context_updates"] = {"set": dict(context_set)}
    return Envelope(
        channel_id=channel_id,
        sender_id=sender_id,
        audience=None if audience is None else list(audience),
        event_type=EV_PACKET,
        event_data=data,
        causation_id=causation_id,
    )


def default_expected_next(metadata: Any, state: Any) -> None:
    """No one: for channel types without an order of turns."""


def default_tools_for(client: Any, metadata: Any, state: Any, participant_id: str) -> list[Any]:
    """No tools: the participants' own suffice."""
    return []


def text_of(envelope: Envelope) -> str | None:
    """The text of an `EV_TEXT`; `None` for anything else."""
    text = envelope.event_data.get("text") if envelope.event_type == EV_TEXT else None
    return text if isinstance(text, str) and text else None
