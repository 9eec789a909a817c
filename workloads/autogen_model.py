"""A scripted AutoGen model, for workloads and tests."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)

_NOTHING = RequestUsage(prompt_tokens=0, completion_tokens=0)


class ScriptedModel(ChatCompletionClient):
    """Plays its turns, then says "done": a text, or tool calls as `(id, name, arguments)`."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.offered: list[Any] = []

    async def create(self, messages: Sequence[Any], **options: Any) -> CreateResult:
        """The next turn of the script."""
        self.offered = list(options.get("tools") or [])
        turn = self.turns.pop(0) if self.turns else "done"
        calls = turn if isinstance(turn, str) else [_native(*call) for call in turn]
        reason: Any = "stop" if isinstance(turn, str) else "function_calls"
        return CreateResult(finish_reason=reason, content=calls, usage=_NOTHING, cached=False)

    async def create_stream(
        self, messages: Sequence[Any], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The next turn, in one piece."""
        yield await self.create(messages, **options)

    async def close(self) -> None:
        """Nothing is open."""

    def actual_usage(self) -> RequestUsage:
        """Nothing is used."""
        return _NOTHING

    def total_usage(self) -> RequestUsage:
        """Nothing is used."""
        return _NOTHING

    def count_tokens(self, messages: Sequence[Any], *, tools: Sequence[Any] = ()) -> int:
        """Nothing is counted."""
        return 0

    def remaining_tokens(self, messages: Sequence[Any], *, tools: Sequence[Any] = ()) -> int:
        """Always enough."""
        return 1_000

    @property
    def capabilities(self) -> Any:
        """What the model can do."""
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        """What the model can do."""
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
        )


def _native(call_id: str, name: str, arguments: Any) -> FunctionCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return FunctionCall(id=call_id, name=name, arguments=text)
