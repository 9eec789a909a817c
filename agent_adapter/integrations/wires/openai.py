"""OpenAI's two APIs: tools, calls and answers in the form in which they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agent_adapter.core.schema.openai_strict import openai_strict, strict_arguments
from agent_adapter.core.schema.providers import openai
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.wires.calls import Answer, ProviderCall, adapted, field

__all__ = ["Api", "answer_of", "call_of_item", "calls_of", "meant", "open_items", "tool_of"]

Api = Literal["chat", "responses"]
"""Chat Completions or Responses."""


def tool_of(spec: ToolSpec, api: Api, strict: bool) -> dict[str, Any]:
    """The tool as the API takes it."""
    schema = adapted(spec, openai_strict if strict else openai)
    function: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": schema,
    }
    # Responses tries strict by itself when nothing is said.
    function["strict"] = strict
    if api == "responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}


def meant(spec: ToolSpec, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments without the nulls that stand for "not given"."""
    if not _holds_null(args):
        return args
    mended: Mapping[str, Any] = strict_arguments(spec.arguments.schema, args)
    return mended


def calls_of(response: Any) -> tuple[Api, list[ProviderCall]]:
    """Which API `response` is from, and its function calls.

    `response` is a `ChatCompletion`, one of its messages, a `Response`, or the JSON form of one.
    """
    output = field(response, "output")
    if output is not None:
        return "responses", [call_of_item(item) for item in output if _is_call(item)]
    choices = field(response, "choices")
    if choices is not None:
        response = field(choices[0], "message") if choices else None
    found = field(response, "tool_calls") or ()
    return "chat", [_call_of_tool_call(call) for call in found if field(call, "function")]


def call_of_item(item: Any) -> ProviderCall:
    """The call in an output item; its `id` is the item's own, `call_id` the call's."""
    return ProviderCall(
        call_id=field(item, "call_id"),
        native_id=field(item, "call_id"),
        name=field(item, "name"),
        arguments=field(item, "arguments"),
    )


def answer_of(answer: Answer, api: Api) -> dict[str, Any]:
    """The message or item that answers a call."""
    if api == "responses":
        output = {"call_id": answer.call.native_id, "output": answer.text}
        return {"type": "function_call_output", **output}
    return {"role": "tool", "tool_call_id": answer.call.native_id, "content": answer.text}


def _call_of_tool_call(call: Any) -> ProviderCall:
    function = field(call, "function")
    return ProviderCall(
        call_id=field(call, "id"),
        native_id=field(call, "id"),
        name=field(function, "name"),
        arguments=field(function, "arguments"),
    )


def _is_call(item: Any) -> bool:
    return bool(field(item, "type") == "function_call")


def _holds_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_null, value.values()))
    if isinstance(value, list):
        return any(map(_holds_null, value))
    return value is None


def open_items(items: Iterable[Any]) -> list[ProviderCall]:
    """The calls among Responses items that no output answers yet."""
    listed = list(items)
    answered = {
        field(item, "call_id") for item in listed if field(item, "type") == "function_call_output"
    }
    calls = [call_of_item(item) for item in listed if _is_call(item)]
    return [call for call in calls if call.call_id not in answered]
