"""OpenAI's Responses for the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.quarantine import OnError, sent
from agent_adapter.integrations.wires.calls import Answer, Mended, ProviderCall, member
from agent_adapter.integrations.wires.openai import (
    RESPONSE_IDS,
    answers_of,
    calls_of,
    meant,
    open_items,
    response_end,
    tool_of,
)
from agent_adapter.integrations.wires.protocol import Piece, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """OpenAI's Responses; the whole conversation is sent each time."""

    client: Any
    mend: Mended | None = meant

    def tools(self, specs: Iterable[ToolSpec], on_error: OnError = "skip") -> Any:
        """Function dictionaries."""
        return sent("OpenAI", specs, lambda spec: tool_of(spec, "responses", False), on_error)

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
        if response.status == "failed":
            code = member(response.error, "code") or "no reason given"
            raise IntegrationError(f"the provider's response failed: {code}")
        end = response_end(response)
        return Turn(
            said=[item.model_dump(mode="json", exclude_none=True) for item in response.output],
            calls=calls_of(response)[1],
            text=response.output_text or (_refusal_in(response) if end.reason == "refusal" else ""),
            response=response,
            stopped=end,
            place=RESPONSE_IDS.of(response),
        )

    async def _streamed(self, request: Mapping[str, Any], piece: Piece) -> Any:
        ended = None
        async with await self.client.responses.create(**request, stream=True) as stream:
            async for event in stream:
                if event.type in ("response.output_text.delta", "response.refusal.delta"):
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
        return answers_of(answers, "responses")

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The function calls without an output."""
        return open_items(messages)


def _refusal_in(response: Any) -> str:
    parts = (part for item in response.output for part in member(item, "content") or ())
    return "".join(part.refusal for part in parts if part.type == "refusal")
