"""A model for Agno agents that follows a script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from agno.models.base import Model
from agno.models.response import ModelResponse


@dataclass
class ScriptedModel(Model):
    """Plays its turns in order: a text, or calls as `(id, tool, arguments)`."""

    id: str = "scripted"
    turns: list[Any] = field(default_factory=list)

    async def ainvoke(self, *args: Any, **options: Any) -> ModelResponse:
        """The next turn."""
        turn = self.turns.pop(0)
        if isinstance(turn, str):
            return ModelResponse(role="assistant", content=turn)
        return ModelResponse(role="assistant", tool_calls=[_native(*call) for call in turn])

    async def ainvoke_stream(self, *args: Any, **options: Any) -> AsyncIterator[ModelResponse]:
        """The next turn, in one piece."""
        yield await self.ainvoke(*args, **options)

    def invoke(self, *args: Any, **options: Any) -> ModelResponse:
        """Refused: async tools need Agno's async loop."""
        raise RuntimeError("the scripted model is async only: use arun")

    def invoke_stream(self, *args: Any, **options: Any) -> Iterator[ModelResponse]:
        """Refused: async tools need Agno's async loop."""
        raise RuntimeError("the scripted model is async only: use arun")

    def _parse_provider_response(self, response: Any, **options: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


def _native(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}
