"""Real AutoGen agents around a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
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


def agent_of(tools: Iterable[Any], *turns: Any) -> AssistantAgent:
    """An agent whose model plays `turns` and then says "done"."""
    return AssistantAgent("shop", ScriptedModel(*turns), tools=list(tools), max_tool_iterations=9)


async def run(tools: Iterable[Any], *turns: Any) -> Mapping[str, FunctionExecutionResult]:
    """The results of every tool call of one run, by call id."""
    result = await agent_of(tools, *turns).run(task="go")
    events = [m for m in result.messages if isinstance(m, ToolCallExecutionEvent)]
    return {r.call_id: r for event in events for r in event.content}


def error_of(result: FunctionExecutionResult) -> dict[str, str]:
    """`{"kind", "message"}` as the model reads it of one call."""
    assert result.is_error, result
    error: dict[str, str] = json.loads(result.content)["error"]
    return error
