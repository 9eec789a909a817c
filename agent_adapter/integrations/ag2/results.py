"""AG2's results as the ledger keeps them, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.integrations.ag2.calls import sendable

if TYPE_CHECKING:
    from ag2.events import ToolCallEvent, ToolResultEvent
    from ag2.events.tool_events import ToolResult

__all__ = ["event_of", "routing_of", "value_of"]

_WHOLE = "ag2_result"


def value_of(result: ToolResult) -> Any:
    """A native result as the ledger keeps it: text, data, or the whole of a larger one."""
    from ag2.events import DataInput, TextInput

    parts: list[list[Any]] = []
    for part in result.parts:
        if isinstance(part, TextInput):
            parts.append(["text", part.content])
        elif isinstance(part, DataInput):
            parts.append(["data", routing_of(part.data) or part.data])
        else:
            return result  # a file: handed out now, not kept
    for _, data in parts:
        if isinstance(data, (Handoff, Finish)):
            return data
    if len(parts) == 1 and not result.final and not result.metadata:
        return parts[0][1]
    return {_WHOLE: {"parts": parts, "final": result.final, "metadata": dict(result.metadata)}}


def event_of(event: ToolCallEvent, value: Any) -> ToolResultEvent:
    """AG2's event for a value that comes from the ledger or from a hook."""
    from ag2.events import DataInput, TextInput, ToolResult, ToolResultEvent

    if isinstance(value, dict) and set(value) == {_WHOLE}:
        kept = value[_WHOLE]
        kinds = {"text": TextInput, "data": DataInput}
        result = ToolResult(
            parts=[kinds[kind](data) for kind, data in kept["parts"]],
            final=kept["final"],
            metadata=kept["metadata"],
        )
    elif isinstance(value, ToolResult):
        result = value
    else:
        result = ToolResult(sendable(value))
    return ToolResultEvent(parent_id=event.id, name=event.name, result=result)


def routing_of(value: Any) -> Handoff | Finish | None:
    """A routing value of either library, as ours."""
    if isinstance(value, (Handoff, Finish)):
        return value
    kind = type(value)
    if kind.__module__ != "ag2.network.handoff":
        return None
    if kind.__name__ == "Handoff":
        return Handoff(value.target, value.reason)
    return Finish(value.summary, value.reason) if kind.__name__ == "Finish" else None
