"""What AG2 is given for a call's end, and its own results as the ledger keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_data, answer_text, told
from agent_adapter.core.errors import ApprovalPending
from agent_adapter.core.result_parts import parts_of
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.integrations.ag2.content import inputs_of

if TYPE_CHECKING:
    from ag2.events import ToolCallEvent, ToolResultEvent
    from ag2.events.tool_events import ToolResult

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
        result = result_of(value)
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


_PLAIN = (str, int, bool, type(None))


def result_of(value: Any, edited: Mapping[str, Any] | None = None) -> ToolResult:
    """The native result that hands out `value`; parts of it are inputs of their own."""
    from ag2.events import ToolResult

    if edited is not None and not _is_ag2(value):
        value = told(value, edited)
    found = () if type(value) in _PLAIN or _is_ag2(value) else parts_of(value)
    return ToolResult(*inputs_of(found)) if found else ToolResult(sendable(value))


def _is_ag2(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "ag2"


def sendable(value: Any) -> Any:
    """Text as text, AG2's own values and routing values as they are, all else as JSON values."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, (Handoff, Finish)) or _is_ag2(value):
        return value  # read by whoever runs the turn; AG2's clients write them as JSON
    plain = answer_data(value)
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

    return ToolErrorEvent(
        parent_id=event.id,
        name=event.name,
        error=error,
        result=ToolResult(answer_text(error=error)),
    )
