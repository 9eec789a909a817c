"""AG2's events and ours: a call's arguments and ids, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    AgentAdapterError,
    ApprovalPending,
    ToolArgsInvalid,
    model_visible_error,
)
from agent_adapter.core.results import plain_result
from agent_adapter.core.routing import Finish, Handoff

if TYPE_CHECKING:
    from ag2.events import ToolCallEvent, ToolResultEvent

    from agent_adapter.core.tool import ToolSpec

__all__ = ["arguments_of", "bind", "failure", "sendable", "waiting"]


def bind(event: ToolCallEvent, stream_id: str) -> ToolContext:
    """The context of one call on a stream."""
    # A stream outlives a pause and a restart of the turn, the call id does not.
    return ToolContext(event.id or None, stream_id, stream_id, bound_by="ag2")


def arguments_of(spec: ToolSpec, event: ToolCallEvent) -> Mapping[str, Any]:
    """The call's arguments as the JSON object they must be; parsed once per event."""
    try:
        args = event.serialized_arguments
    except (ValueError, TypeError, RecursionError):
        raise ToolArgsInvalid(
            spec.name, ["(arguments): not valid JSON (expected a JSON object)"]
        ) from None
    if not isinstance(args, dict):
        raise ToolArgsInvalid(
            spec.name,
            [f"(arguments): a JSON {_json_kind(args)} (expected a JSON object)"],
        )
    return args


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {list: "array", str: "string", int: "number", float: "number", type(None): "null"}
    return kinds.get(type(value), "value")


_PLAIN = (str, int, bool, type(None))


def sendable(value: Any) -> Any:
    """Text as text, AG2's own values and routing values as they are, all else as JSON values."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, (Handoff, Finish)) or kind.__module__.partition(".")[0] == "ag2":
        return value  # read by whoever runs the turn; AG2's clients write them as JSON
    plain = json.loads(plain_result(value))
    if isinstance(plain, str):  # a date, say: as data it stays JSON, as text it would be bare
        from ag2.events import DataInput

        return DataInput(plain)
    return plain


def waiting(event: ToolCallEvent, pending: ApprovalPending) -> ToolResultEvent:
    """The result of a call that waits for a person: the ids of its records."""
    from ag2.events import ToolResultEvent

    return ToolResultEvent.from_call(event, result=str(pending))


def failure(event: ToolCallEvent, error: Exception) -> ToolResultEvent:
    """AG2's error event without AG2's traceback: the model reads kind and message only."""
    from ag2.events import ToolErrorEvent, ToolResult

    shown = model_visible_error(error)
    if isinstance(error, AgentAdapterError) and not isinstance(error, MODEL_VISIBLE_ERRORS):
        shown = {"error": {"kind": error.kind, "message": type(error).__name__}}
    return ToolErrorEvent(
        parent_id=event.id,
        name=event.name,
        error=error,
        result=ToolResult(json.dumps(shown, ensure_ascii=False)),
    )
