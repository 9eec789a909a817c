"""OpenAI's two APIs for the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as of
from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.wires import openai
from agent_adapter.integrations.wires.calls import Answer, Mended, ProviderCall, field
from agent_adapter.integrations.wires.protocol import Piece, Turn

__all__ = ["Chat", "Responses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """OpenAI's Chat Completions."""

    client: Any
    mend: Mended | None = openai.meant

    def tools(self, specs: Iterable[ToolSpec]) -> Any:
        """Function dictionaries."""
        return [openai.tool_of(spec, "chat", False) for spec in specs]

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
            calls=openai.calls_of(message)[1],
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
        return [openai.answer_of(answer, "chat") for answer in answers]

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The calls of the last assistant message without a tool message behind it."""
        answered = set()
        for message in reversed(messages):
            if field(message, "role") != "tool":
                calls = openai.calls_of(message)[1]
                return [call for call in calls if call.call_id not in answered]
            answered.add(field(message, "tool_call_id"))
        return []


@dataclass(slots=True)
class _Gathered:
    """Tool calls put together from a stream's pieces, by their place."""

    found: dict[int, dict[str, Any]] = of(default_factory=dict)

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
    mend: Mended | None = openai.meant

    def tools(self, specs: Iterable[ToolSpec]) -> Any:
        """Function dictionaries."""
        return [openai.tool_of(spec, "responses", False) for spec in specs]

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
            calls=openai.calls_of(response)[1],
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
        return [openai.answer_of(answer, "responses") for answer in answers]

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The function calls without an output."""
        return openai.open_items(messages)
