"""OpenAI's two APIs: tools, calls and answers in the form in which they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.schema.mending import mended
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.schema.providers import openai
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.wires.calls import Answer, Mended, ProviderCall, adapted, member
from agent_adapter.integrations.wires.protocol import Piece, Turn

Api = Literal["chat", "responses"]
"""Chat Completions or Responses."""


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
        return "responses", [call_of_item(item) for item in output if _is_call(item)]
    choices = member(response, "choices")
    if choices is not None:
        response = member(choices[0], "message") if choices else None
    found = member(response, "tool_calls") or ()
    return "chat", [_call_of_tool_call(call) for call in found if member(call, "function")]


def call_of_item(item: Any) -> ProviderCall:
    """The call in an output item; its `id` is the item's own, `call_id` the call's."""
    return ProviderCall(
        call_id=member(item, "call_id"),
        native_id=member(item, "call_id"),
        name=member(item, "name"),
        arguments=member(item, "arguments"),
    )


def answer_of(answer: Answer, api: Api) -> dict[str, Any]:
    """The message or item that answers a call."""
    if api == "responses":
        output = {"call_id": answer.call.native_id, "output": answer.text}
        return {"type": "function_call_output", **output}
    return {"role": "tool", "tool_call_id": answer.call.native_id, "content": answer.text}


def _call_of_tool_call(call: Any) -> ProviderCall:
    function = member(call, "function")
    return ProviderCall(
        call_id=member(call, "id"),
        native_id=member(call, "id"),
        name=member(function, "name"),
        arguments=member(function, "arguments"),
    )


def _is_call(item: Any) -> bool:
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
    calls = [call_of_item(item) for item in listed if _is_call(item)]
    return [call for call in calls if call.call_id not in answered]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """OpenAI's Chat Completions."""

    client: Any
    mend: Mended | None = meant

    def tools(self, specs: Iterable[ToolSpec]) -> Any:
        """Function dictionaries."""
        return [tool_of(spec, "chat", False) for spec in specs]

    def opening(self, prompt: str) -> list[Any]:
        """One message of the user."""
        return [{"role": "user", "content": prompt}]

    async def ask(self, request: Mapping[str, Any], *, piece: Piece | None) -> Turn:
        """One completion."""
        if piece is None:
            response = await self.client.chat.completions.create(**request)
            message = response.choices[0].message.model_dump(mode="json", exclude_none=True)
        else:
            response = None
            message = await self._streamed(request, piece)
        return Turn(
            said=[message],
            calls=calls_of(message)[1],
            text=message.get("content") or "",
            response=response,
        )

    async def _streamed(self, request: Mapping[str, Any], piece: Piece) -> dict[str, Any]:
        text, calls = "", _Gathered()
        async with await self.client.chat.completions.create(**request, stream=True) as stream:
            async for chunk in stream:
                for choice in chunk.choices[:1]:
                    calls.add(choice.delta.tool_calls or ())
                    if choice.delta.content:
                        text += choice.delta.content
                        await piece(choice.delta.content)
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        return message | ({"tool_calls": list(calls.found.values())} if calls.found else {})

    def answers(self, answers: Sequence[Answer]) -> list[Any]:
        """Tool messages."""
        return [answer_of(answer, "chat") for answer in answers]

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The calls of the last assistant message without a tool message behind it."""
        answered = set()
        for message in reversed(messages):
            if member(message, "role") != "tool":
                calls = calls_of(message)[1]
                return [call for call in calls if call.call_id not in answered]
            answered.add(member(message, "tool_call_id"))
        return []


@dataclass(slots=True)
class _Gathered:
    """Tool calls put together from a stream's pieces, by their place."""

    found: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, deltas: Iterable[Any]) -> None:
        """Take the pieces of one chunk."""
        for delta in deltas:
            empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            call = self.found.setdefault(delta.index, empty)
            call["id"] = delta.id or call["id"]
            if delta.function is not None:
                call["function"]["name"] += delta.function.name or ""
                call["function"]["arguments"] += delta.function.arguments or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """OpenAI's Responses; the whole conversation is sent each time."""

    client: Any
    mend: Mended | None = meant

    def tools(self, specs: Iterable[ToolSpec]) -> Any:
        """Function dictionaries."""
        return [tool_of(spec, "responses", False) for spec in specs]

    def opening(self, prompt: str) -> list[Any]:
        """One message of the user."""
        return [{"role": "user", "content": prompt}]

    async def ask(self, request: Mapping[str, Any], *, piece: Piece | None) -> Turn:
        """One response."""
        wanted = dict(request)
        wanted["input"] = wanted.pop("messages")
        if piece is None:
            response = await self.client.responses.create(**wanted)
        else:
            response = await self._streamed(wanted, piece)
        return Turn(
            said=[item.model_dump(mode="json", exclude_none=True) for item in response.output],
            calls=calls_of(response)[1],
            text=response.output_text,
            response=response,
        )

    async def _streamed(self, request: Mapping[str, Any], piece: Piece) -> Any:
        ended = None
        async with await self.client.responses.create(**request, stream=True) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    await piece(event.delta)
                elif event.type in ("response.completed", "response.incomplete"):
                    ended = event.response
                elif event.type in ("response.failed", "error"):
                    raise IntegrationError(f"the provider ended the stream with {event.type}")
        if ended is None:
            raise IntegrationError("the provider's stream ended without a response")
        return ended

    def answers(self, answers: Sequence[Answer]) -> list[Any]:
        """Function call outputs."""
        return [answer_of(answer, "responses") for answer in answers]

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The function calls without an output."""
        return open_items(messages)
