"""LangChain's own tools as specs, so that they run under the executor and in other frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_adapter.core.content import Artifact
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolDefinitionError, ToolError, ToolFailed
from agent_adapter.core.result_parts import holds_content
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.blocks import value_of_blocks
from agent_adapter.integrations.langchain_core.parameters import (
    Parameter,
    aliased_schema,
    parameters_of,
    refuse_injected,
)

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def imported(native: BaseTool, *, name: str | None = None, **policy: Any) -> ToolSpec:
    """`native` as a spec; `name` replaces one that other frameworks cannot have.

    What the tool raises as `ToolException` is shown to the model, nothing else is.

    Raises:
        ToolDefinitionError: it is no LangChain tool, or needs the state of the graph it was in or
            an injected argument without a default.
    """
    from langchain_core.tools import BaseTool

    if not isinstance(native, BaseTool):
        raise ToolDefinitionError(
            f"{native!r} is no LangChain tool; make one of a function with "
            "langchain_core.tools.tool, or register the function itself"
        )
    parameters = parameters_of(native)
    refuse_injected(native, parameters)
    chosen = name if name is not None else native.name
    schema = aliased_schema(native, parameters) or _schema_of(native)
    call = _caller(native, parameters)
    return ToolSpec.from_json_schema(chosen, native.description or chosen, schema, call, **policy)


def _schema_of(native: BaseTool) -> dict[str, Any]:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    schema = native.tool_call_schema
    if isinstance(schema, Mapping):
        return {key: value for key, value in schema.items() if key != "description"}
    if hasattr(schema, "model_json_schema"):
        found: dict[str, Any] = schema.model_json_schema()
        found.pop("description", None)
        return found
    # A model of Pydantic's first version.
    parameters: dict[str, Any] = convert_to_openai_tool(native)["function"]["parameters"]
    return parameters


def _caller(native: BaseTool, parameters: Mapping[str, Parameter]) -> Any:
    """A function of the tool's arguments: its raw value, not the text of a message."""
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import InjectedToolCallId, ToolException

    # Its own handling of errors would make a plain result of them.
    bare = native.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})
    # Only the message of a call with an id brings the tool's artifact along.
    gives_both = native.response_format == "content_and_artifact"
    takes_id = gives_both or any(each.is_a(InjectedToolCallId) for each in parameters.values())

    async def call(agent_adapter_context: ToolContext, **arguments: Any) -> Any:
        given: Any = arguments
        if takes_id:
            call_id = agent_adapter_context.call_id or ""
            given = {"name": native.name, "args": arguments, "id": call_id, "type": "tool_call"}
        try:
            value = await bare.ainvoke(given)
        except ToolException as exc:
            raise ToolError(_text_of(native.handle_tool_error, exc)) from exc
        if isinstance(value, ToolMessage):
            if value.status == "error":
                raise ToolError(str(value.content))
            return _value_of(value)
        return value_of_blocks(value)

    return call


def _value_of(message: Any) -> Any:
    """The content of a tool's message, and beside it what the tool gives to the program."""
    content = value_of_blocks(message.content)
    if message.artifact is None:
        return content
    parts = content if isinstance(content, list) and holds_content(content) else [content]
    return [*parts, Artifact(message.artifact)]


def _text_of(handling: Any, error: Exception) -> str:
    """The text that the tool's author meant for the model."""
    if isinstance(handling, str):
        return handling
    if not callable(handling):
        return str(error)
    try:
        return str(handling(error))
    except Exception as exc:
        raise ToolFailed(f"the handler of a tool's error failed: {type(exc).__name__}") from exc
