"""Anthropic's Messages API: tools, calls and answers in the form in which they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.schema.providers import anthropic
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.wires.calls import Answer, Mended, ProviderCall, adapted, member
from agent_adapter.integrations.wires.protocol import Piece, Turn


def tool_of(spec: ToolSpec) -> dict[str, Any]:
    """The tool as the API takes it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": adapted(spec, anthropic),
    }


def calls_of(message: Any) -> list[ProviderCall]:
    """The `tool_use` blocks of a message or of its JSON form."""
    content = member(message, "content")
    if not isinstance(content, list):
        return []
    return [
        ProviderCall(
            call_id=member(block, "id"),
            native_id=member(block, "id"),
            name=member(block, "name"),
            arguments=member(block, "input"),
        )
        for block in content
        if member(block, "type") == "tool_use"
    ]


def result_of(answer: Answer) -> dict[str, Any]:
    """The `tool_result` block that answers a call."""
    return {
        "type": "tool_result",
        "tool_use_id": answer.call.native_id,
        "content": answer.text,
        "is_error": answer.is_error,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Anthropic's Messages API."""

    client: Any
    mend: Mended | None = None

    def tools(self, specs: Iterable[ToolSpec]) -> Any:
        """Tool dictionaries."""
        return [tool_of(spec) for spec in specs]

    def opening(self, prompt: str) -> list[Any]:
        """One message of the user."""
        return [{"role": "user", "content": prompt}]

    async def ask(self, request: Mapping[str, Any], *, piece: Piece | None) -> Turn:
        """One message."""
        wanted = {"max_tokens": 4096, **request}
        if piece is None:
            message = await self.client.messages.create(**wanted)
        else:
            async with self.client.messages.stream(**wanted) as stream:
                async for text in stream.text_stream:
                    await piece(text)
                message = await stream.get_final_message()
        content = [_sent_back(block) for block in message.content]
        return Turn(
            said=[{"role": "assistant", "content": content}] if content else [],
            calls=calls_of(message),
            text="".join(block.text for block in message.content if block.type == "text"),
            response=message,
            goes_on=message.stop_reason == "pause_turn",
        )

    def answers(self, answers: Sequence[Answer]) -> list[Any]:
        """One message of the user with every result."""
        return [{"role": "user", "content": [result_of(item) for item in answers]}]

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The calls of the last message, if it is the assistant's."""
        last = messages[-1] if messages else None
        return calls_of(last) if member(last, "role") == "assistant" else []


def _sent_back(block: Any) -> dict[str, Any]:
    kept: dict[str, Any] = block.model_dump(mode="json", exclude_none=True)
    kept.pop("parsed_output", None)
    return kept
