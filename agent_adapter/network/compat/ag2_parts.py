"""Functions over AG2's own input parts and replies, for channel types written for AG2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.network.adapters.defaults import default_build_text_envelope, text_of
from agent_adapter.network.compat.view_events import Rendered as Rendered
from agent_adapter.network.compat.view_events import ensure_parts as ensure_parts

if TYPE_CHECKING:
    from ag2.events import Input, TextInput


def default_render_envelope(envelope: Envelope) -> list[TextInput] | None:
    """The text of an `EV_TEXT` as one part; `None` for any other envelope."""
    from ag2.events import TextInput

    text = envelope.event_data.get("text", "") if envelope.event_type == EV_TEXT else None
    return [TextInput(text)] if isinstance(text, str) else None


def default_extract_turn_input(envelope: Envelope) -> list[Input] | None:
    """The text of an `EV_TEXT` as input of the next turn; `None` if there is none."""
    from ag2.events import TextInput

    text = text_of(envelope)
    return None if text is None else [TextInput(text)]


def default_build_round_envelope(
    metadata: Any, sender_id: str, reply: Any, events: Any, state: Any, hub: Any
) -> Envelope | None:
    """The body of AG2's `reply` as an `EV_TEXT`; `None` for an empty one."""
    if not reply.body:
        return None
    return default_build_text_envelope(metadata.channel_id, sender_id, reply.body)
