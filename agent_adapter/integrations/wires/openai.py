"""OpenAI's two APIs: tools, calls and answers in the form in which they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from agent_adapter.core.schema.mending import mended
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.schema.providers import openai
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_id
from agent_adapter.integrations.wires.calls import (
    Answer,
    ProviderCall,
    ResponseIds,
    adapted,
    member,
)
from agent_adapter.integrations.wires.finish import WHOLE, FinishReason, Stopped, stopped
from agent_adapter.integrations.wires.history import ATTACHED
from agent_adapter.integrations.wires.openai_content import (
    chat_media,
    chat_text,
    responses_output,
)

CHAT_IDS = ResponseIds(target="openai", made="created")
RESPONSE_IDS = ResponseIds(target="openai", made="created_at")

Api = Literal["chat", "responses"]
"""Chat Completions or Responses."""

# Servers that speak this API have words of their own for its normal ends.
_CHAT_WORDS: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "calls",
    "tool_call": "calls",
    "tool_use": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content-filter",
    "safety": "content-filter",
    "refusal": "refusal",
}
_RESPONSE_WORDS: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content-filter",
}


def tool_of(spec: ToolSpec, api: Api, strict: bool) -> dict[str, Any]:
    """The tool as the API takes it."""
    described, schema = spec.description, spec.json_schema()
    if strict:
        schema = adapted(spec, openai_strict)
    else:
        described, schema = openai.tool(described, schema)
    function: dict[str, Any] = {"name": spec.name, "description": described, "parameters": schema}
    # Responses tries strict by itself when nothing is said.
    function["strict"] = strict
    if api == "responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}


def meant(spec: ToolSpec, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments without the nulls that stand for "not given"."""
    if not _holds_null(args):
        return args
    without: Mapping[str, Any] = mended(spec.arguments.schema, args)
    return without


def calls_of(response: Any) -> tuple[Api, list[ProviderCall]]:
    """Which API `response` is from, and its function calls.

    `response` is a `ChatCompletion`, one of its messages, a `Response`, or the JSON form of one.
    """
    output = member(response, "output")
    if output is not None:
        end = response_end(response)
        return "responses", [call_of_item(item, end) for item in output if is_call(item)]
    return "chat", chat_calls(*message_of(response), member(response, "id"))


def message_of(response: Any) -> tuple[Any, Stopped]:
    """The message of a completion and why it ended; a message alone is whole."""
    choices = member(response, "choices")
    if choices is None:
        return response, WHOLE
    if not choices:
        return None, Stopped(reason="unknown")
    message = member(choices[0], "message")
    return message, chat_end(message, member(choices[0], "finish_reason"), whole=True)


def chat_end(message: Any, said: Any, *, whole: bool) -> Stopped:
    """Why a choice ended; a `whole` response may leave out the word, a stream may not."""
    if member(message, "refusal"):
        return Stopped(reason="refusal", said="refusal")
    return WHOLE if whole and not said else stopped(_CHAT_WORDS, said)


def chat_calls(message: Any, end: Stopped, origin: Any = None) -> list[ProviderCall]:
    """The function calls of a message; one without an id is named by its response and place."""
    found = member(message, "tool_calls") or ()
    return [
        _call_of_tool_call(call, end, f"{origin}:{place}" if origin else None)
        for place, call in enumerate(found)
        if member(call, "function")
    ]


def response_end(response: Any) -> Stopped:
    """Why a response ended."""
    status = member(response, "status")
    if status == "incomplete":
        said = member(member(response, "incomplete_details"), "reason")
        known = stopped(_RESPONSE_WORDS, said)
        return Stopped(reason=known.reason, said=known.said or status)
    if status not in (None, "completed"):
        return Stopped(reason="unknown", said=str(status))
    refused = any(
        member(part, "type") == "refusal"
        for item in member(response, "output") or ()
        if member(item, "type") == "message"
        for part in member(item, "content") or ()
    )
    return Stopped(reason="refusal", said="refusal") if refused else WHOLE


def call_of_item(item: Any, end: Stopped = WHOLE) -> ProviderCall:
    """The call in an output item; its `id` is the item's own, `call_id` the call's.

    An item says itself whether it is whole, also where others of its response are not.
    """
    status = member(item, "status")
    whole = status == "completed" if status else end.covers(member(item, "arguments"))
    return ProviderCall(
        call_id=member(item, "call_id") or new_id("call"),
        native_id=member(item, "call_id"),
        name=member(item, "name") or "",
        arguments=member(item, "arguments"),
        complete=whole,
        finish=end.said or status,
    )


def answers_of(answers: Sequence[Answer], api: Api) -> list[dict[str, Any]]:
    """The messages or items that answer calls, in their order.

    In Chat Completions the media of all results follow in one message of the user: a tool message
    holds text only.
    """
    if api == "responses":
        return [_output_of(answer) for answer in answers]
    messages = [_message_of(answer) for answer in answers]
    shown: list[dict[str, Any]] = []
    for answer in answers:
        media = chat_media(answer.parts)
        if media:
            told = f"{ATTACHED}{answer.call.name} ({answer.call.call_id}):"
            shown += [{"type": "text", "text": told}, *media]
    return [*messages, {"role": "user", "content": shown}] if shown else messages


def _output_of(answer: Answer) -> dict[str, Any]:
    parts = answer.parts
    output: Any = responses_output(parts) if parts else answer.text
    return {"type": "function_call_output", "call_id": answer.call.call_id, "output": output}


def _message_of(answer: Answer) -> dict[str, Any]:
    parts = answer.parts
    text = chat_text(parts) if parts else answer.text
    return {"role": "tool", "tool_call_id": answer.call.call_id, "content": text}


def _call_of_tool_call(call: Any, end: Stopped, made_up: str | None) -> ProviderCall:
    function = member(call, "function")
    arguments = member(function, "arguments")
    return ProviderCall(
        call_id=member(call, "id") or made_up or new_id("call"),
        native_id=member(call, "id"),
        name=member(function, "name") or "",
        arguments=arguments,
        complete=end.covers(arguments),
        finish=end.said,
    )


def is_call(item: Any) -> bool:
    """Whether an output item is a function call."""
    return bool(member(item, "type") == "function_call")


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
        member(item, "call_id") for item in listed if member(item, "type") == "function_call_output"
    }
    calls = [call_of_item(item) for item in listed if is_call(item)]
    return [call for call in calls if call.call_id not in answered]
