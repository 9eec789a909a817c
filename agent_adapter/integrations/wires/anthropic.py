"""Anthropic's Messages API: tools, calls and answers in the form in which they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.content import Content, Image, Media, left_out
from agent_adapter.core.schema.providers import anthropic
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_id
from agent_adapter.integrations.part_text import part_text, reachable
from agent_adapter.integrations.quarantine import OnError, sent
from agent_adapter.integrations.wires.calls import (
    Answer,
    Mended,
    ProviderCall,
    ResponseIds,
    adapted,
    member,
)
from agent_adapter.integrations.wires.finish import WHOLE, FinishReason, Stopped, stopped
from agent_adapter.integrations.wires.protocol import Piece, Turn

IDS = ResponseIds(target="anthropic")
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_WHY = "stop_reason"
_WORDS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}


def tool_of(spec: ToolSpec) -> dict[str, Any]:
    """The tool as the API takes it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": adapted(spec, anthropic),
    }


def stopped_of(message: Any) -> Stopped:
    """Why a message ended; one of a conversation does not say, and is whole."""
    says = _WHY in message if isinstance(message, Mapping) else hasattr(message, _WHY)
    if not says:
        return WHOLE
    return stopped(_WORDS, member(message, _WHY))


def calls_of(message: Any) -> list[ProviderCall]:
    """The `tool_use` blocks of a message or of its JSON form; none of a turn that is paused.

    The SDK reads the arguments of a stream as far as they came, so only the message's stop reason
    tells whether they are whole.
    """
    content = member(message, "content")
    end = stopped_of(message)
    if not isinstance(content, list) or end.reason == "pause":
        return []
    # A stop sequence may have matched inside of the arguments.
    whole = end is WHOLE or (end.reason in ("stop", "calls") and end.said != "stop_sequence")
    return [
        ProviderCall(
            call_id=member(block, "id") or new_id("call"),
            native_id=member(block, "id"),
            name=member(block, "name") or "",
            arguments=member(block, "input"),
            complete=whole,
            finish=end.said,
        )
        for block in content
        if member(block, "type") == "tool_use"
    ]


def blocks_of(parts: Sequence[Content]) -> list[dict[str, Any]]:
    """The parts of a result as the API takes them; a line for what it cannot show."""
    return [_block_of(part) for part in parts]


def _block_of(part: Content) -> dict[str, Any]:
    if not isinstance(part, Media):
        return {"type": "text", "text": part_text(part)}
    is_image = isinstance(part, Image) and part.media_type in _IMAGES
    if is_image or part.media_type == "application/pdf":
        source: dict[str, Any] = {"type": "url", "url": part.uri}
        if part.data is not None:
            source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
        if reachable(part):
            return {"type": "image" if is_image else "document", "source": source}
    return {"type": "text", "text": left_out(part)}


def result_of(answer: Answer) -> dict[str, Any]:
    """The `tool_result` block that answers a call."""
    return {
        "type": "tool_result",
        "tool_use_id": answer.call.native_id,
        "content": blocks_of(answer.parts) if answer.parts else answer.text,
        "is_error": answer.is_error,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Anthropic's Messages API."""

    client: Any
    mend: Mended | None = None

    def tools(self, specs: Iterable[ToolSpec], on_error: OnError = "skip") -> Any:
        """Tool dictionaries."""
        return sent("Anthropic", specs, tool_of, on_error)

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
            stopped=stopped_of(message),
            place=IDS.of(message),
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
