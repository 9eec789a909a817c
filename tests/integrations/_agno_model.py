"""A scripted Agno model: each turn is a text, or tool calls as `(id, name, arguments)`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from agno.models.base import Model
from agno.models.response import ModelResponse


@dataclass
class ScriptedModel(Model):
    """Plays `turns` in order and keeps what it was shown (`seen`) and offered (`tools`)."""

    id: str = "scripted"
    turns: list[Any] = field(default_factory=list)
    seen: list[list[Any]] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)

    async def ainvoke(self, messages: list[Any], **options: Any) -> ModelResponse:
        """The next turn of the script."""
        self.seen.append(list(messages))
        self.tools = list(options.get("tools") or [])
        turn = self.turns.pop(0) if self.turns else "done"
        if isinstance(turn, str):
            return ModelResponse(role="assistant", content=turn)
        calls = [_native(*call) for call in turn]
        return ModelResponse(role="assistant", tool_calls=calls)

    def invoke(self, *args: Any, **options: Any) -> ModelResponse:
        """Refuse: the tools are async."""
        raise NotImplementedError

    def invoke_stream(self, *args: Any, **options: Any) -> Iterator[ModelResponse]:
        """Refuse: the tools are async."""
        raise NotImplementedError

    async def ainvoke_stream(self, *args: Any, **options: Any) -> AsyncIterator[ModelResponse]:
        """The next turn, in one piece."""
        yield await self.ainvoke(*args, **options)

    def _parse_provider_response(self, response: Any, **options: Any) -> ModelResponse:
        return response  # type: ignore[no-any-return]  # already Agno's own type

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response  # type: ignore[no-any-return]  # already Agno's own type

    def shown(self) -> dict[str, Any]:
        """What the model last read of each call, by call id."""
        return {m.tool_call_id: m.content for m in self.seen[-1] if m.role == "tool"}


def _native(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
