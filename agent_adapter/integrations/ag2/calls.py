"""What an AG2 tool call event says of a call: its ids and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolArgsInvalid
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.ag2.places import call_id_of, identity_of, why_cut_off
from agent_adapter.integrations.base import json_kind

if TYPE_CHECKING:
    from ag2.events import ToolCallEvent


def bind(event: ToolCallEvent, stream_id: str) -> ToolContext:
    """The context of one call on a stream."""
    ctx = ToolContext(call_id_of(event), stream_id, stream_id, bound_by="ag2")
    ctx.incomplete = why_cut_off(event)
    ctx.identity = identity_of(event, stream_id)
    return ctx


def arguments_of(spec: ToolSpec, event: ToolCallEvent) -> Mapping[str, Any]:
    """The call's arguments as the JSON object they must be; parsed once per event."""
    try:
        args = event.serialized_arguments
    except (ValueError, TypeError, RecursionError):
        if why_cut_off(event) is not None:
            return {}  # the executor refuses the call, whatever it says, and writes that down
        raise ToolArgsInvalid(
            spec.name, ["(arguments): not valid JSON (expected a JSON object)"]
        ) from None
    if not isinstance(args, dict):
        raise ToolArgsInvalid(
            spec.name,
            [f"(arguments): a JSON {json_kind(args)} (expected a JSON object)"],
        )
    return args
