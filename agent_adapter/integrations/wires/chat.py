"""OpenAI's Chat Completions for the loop, as OpenAI and compatible servers send them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_id
from agent_adapter.integrations.quarantine import OnError, sent
from agent_adapter.integrations.wires.calls import Answer, Mended, ProviderCall, member
from agent_adapter.integrations.wires.chat_stream import StreamedMessage
from agent_adapter.integrations.wires.finish import WHOLE
from agent_adapter.integrations.wires.openai import (
    CHAT_IDS,
    answers_of,
    chat_calls,
    chat_end,
    meant,
    message_of,
    tool_of,
)
from agent_adapter.integrations.wires.protocol import Piece, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """OpenAI's Chat Completions."""

    client: Any
    mend: Mended | None = meant

    def tools(self, specs: Iterable[ToolSpec], on_error: OnError = "skip") -> Any:
        """Function dictionaries."""
        return sent("OpenAI", specs, lambda spec: tool_of(spec, "chat", False), on_error)

    def opening(self, prompt: str) -> list[Any]:
        """One message of the user."""
        return [{"role": "user", "content": prompt}]

    async def ask(self, request: Mapping[str, Any], *, piece: Piece | None) -> Turn:
        """One completion."""
        if piece is None:
            streamed = None
            response = await self.client.chat.completions.create(**request)
            if not response.choices:
                raise IntegrationError("the provider's response has no choices")
            found, end = message_of(response)
            message = found.model_dump(mode="json", exclude_none=True)
        else:
            response = None
            streamed = await self._streamed(request, piece)
            message, said = streamed.whole(), streamed.finish
            end = chat_end(message, said, whole=False)
        for call in message.get("tool_calls") or ():
            call["id"] = call.get("id") or new_id("call")  # an answer needs one to refer to
        return Turn(
            said=[message] if any(message.get(name) for name in message if name != "role") else [],
            calls=chat_calls(message, end),
            text=message.get("content") or message.get("refusal") or "",
            response=response,
            stopped=end,
            place=CHAT_IDS.of(streamed or response),
        )

    async def _streamed(self, request: Mapping[str, Any], piece: Piece) -> StreamedMessage:
        """The message that a stream makes up."""
        message = StreamedMessage()
        async with await self.client.chat.completions.create(**request, stream=True) as stream:
            async for chunk in stream:
                message.id, message.created = chunk.id or message.id, chunk.created
                for choice in chunk.choices or ():
                    if choice.index:  # 0, or left out; others were asked for with n=
                        continue
                    for text in message.add(choice):
                        await piece(text)
        return message

    def answers(self, answers: Sequence[Answer]) -> list[Any]:
        """Tool messages."""
        return answers_of(answers, "chat")

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The calls of the last assistant message without a tool message behind it."""
        answered = set()
        for message in reversed(messages):
            if member(message, "role") != "tool":
                calls = chat_calls(message, WHOLE)
                return [call for call in calls if call.call_id not in answered]
            answered.add(member(message, "tool_call_id"))
        return []
