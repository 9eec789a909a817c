"""AG2's function tools as specs, so that they run under the executor and in other frameworks."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import IntegrationError, ToolDefinitionError
from agent_adapter.core.names import fitting_name
from agent_adapter.core.results import plain_result
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.ag2.content import part_of

if TYPE_CHECKING:
    from ag2.events.tool_events import ToolResult


def imported(native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
    """`native` as a spec. Each call has a stream of its own, and the tool's middleware around it.

    AG2's `approval_required` among that middleware becomes `confirm=True`: nobody answers AG2's
    own question here.

    Raises `IntegrationError` for what is no `FunctionTool`, and `ToolDefinitionError` for one that
    needs a value of its agent's.
    """
    from ag2.tools.types import FunctionTool

    if not isinstance(native, FunctionTool):
        raise IntegrationError(
            f"ag2 imports a FunctionTool (ag2.tool), not {type(native).__name__}; of a toolkit, "
            "import each of its tools"
        )
    _refuse_unfilled(native.name, native.model)
    layers = [entry.middleware for entry in native.middleware]
    kept = [layer for layer in layers if not _is_approval(layer)]
    if len(kept) < len(layers):
        policy = {"confirm": True, **policy}
    function = native.schema.function
    return ToolSpec.from_json_schema(
        name if name is not None else fitting_name(native.name),
        function.description.strip() or f"The AG2 tool {native.name}.",
        function.parameters,
        _caller(native, kept),
        **policy,
    )


def _refuse_unfilled(tool: str, model: Any) -> None:
    """Refuse a tool that needs a value of its agent's `dependencies` or `variables`."""
    from ag2 import Inject, Variable

    for name, field in model.custom_fields.items():
        given = inspect.signature(model.call).parameters[name].default
        missing = (
            isinstance(field, (Inject, Variable))
            and field.default is Ellipsis
            and field.default_factory is Ellipsis
            and given is inspect.Parameter.empty
        )
        if missing:
            raise ToolDefinitionError(
                f"{tool}: its parameter {name} is filled in from its agent "
                f"({type(field).__name__}), which is not there elsewhere; give it a default"
            )
    for inside in model.dependencies.values():
        if hasattr(inside, "custom_fields"):
            _refuse_unfilled(tool, inside)


def _is_approval(layer: Any) -> bool:
    kind = type(layer)
    return kind.__name__ == "ApprovalRequired" and kind.__module__.startswith("ag2.")


def _caller(native: Any, layers: list[Any]) -> Any:
    from ag2.context import ConversationContext
    from ag2.events import DataInput, TextInput, ToolCallEvent, ToolErrorEvent
    from ag2.stream import MemoryStream

    kinds = (TextInput, DataInput)
    execution = native
    for layer in reversed(layers):
        execution = _inside(layer, execution)

    async def call(agent_adapter_context: ToolContext, **arguments: Any) -> Any:
        event = ToolCallEvent(
            native.name,
            id=agent_adapter_context.call_id or "",
            arguments=json.dumps(arguments, ensure_ascii=False),
        )
        context = ConversationContext(stream=MemoryStream())
        outcome = await execution(event.handled_by(native.source), context)
        if isinstance(outcome, ToolErrorEvent):
            raise outcome.error
        return _value_of(outcome.result, *kinds)

    return call


def _inside(layer: Any, execution: Any) -> Any:
    async def call(event: Any, context: Any) -> Any:
        return await layer(execution, event, context)

    return call


def _value_of(result: ToolResult, text: Any, data: Any) -> Any:
    """The one part's value, or a list of several; bytes and addresses are parts."""
    values = [_value_in(part, text, data) for part in result.parts]
    return values[0] if len(values) == 1 else values


def _value_in(part: Any, text: Any, data: Any) -> Any:
    if isinstance(part, text):
        return part.content
    media = part_of(part)
    if media is not None:
        return media
    return json.loads(plain_result(part.data if isinstance(part, data) else part))
