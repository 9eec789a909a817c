"""Plays a script through a real AutoGen agent; its scripted model is here.

AutoGen tells a tool nothing of its conversation: the run and what the user said are a run scope's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)

from agent_adapter import Executor
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.autogen import autogen_tool
from workloads.agentdojo.scripted import Call, Played, Script

__all__ = ["ScriptedModel", "play"]

_NOTHING = RequestUsage(prompt_tokens=0, completion_tokens=0)


class ScriptedModel(ChatCompletionClient):
    """An AutoGen model that says a script: one call per turn, then the output."""

    def __init__(self, script: Script) -> None:
        self._turns: Iterator[str | list[FunctionCall]] = iter(
            [*map(_call_turn, script.calls), script.output]
        )

    async def create(self, messages: Sequence[Any], **options: Any) -> CreateResult:
        """The script's next turn."""
        turn = next(self._turns)
        reason: Any = "stop" if isinstance(turn, str) else "function_calls"
        return CreateResult(finish_reason=reason, content=turn, usage=_NOTHING, cached=False)

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


def _call_turn(call: Call) -> list[FunctionCall]:
    return [FunctionCall(id=call.id, name=call.tool, arguments=json.dumps(dict(call.arguments)))]


async def play(script: Script, specs: Sequence[ToolSpec], executor: Executor) -> Played:
    """Run the agent to its end and read its history."""
    tools: list[Any] = [autogen_tool(spec, executor=executor) for spec in specs]
    agent = AssistantAgent(
        "agentdojo",
        ScriptedModel(script),
        tools=tools,
        max_tool_iterations=len(script.calls) + 1,
    )
    async with executor.run_scope(f"run_{uuid.uuid4().hex}", said=script.prompt):
        result = await agent.run(task=script.prompt)
    made = [m for m in result.messages if isinstance(m, ToolCallRequestEvent)]
    ended = [m for m in result.messages if isinstance(m, ToolCallExecutionEvent)]
    return Played(
        output=str(getattr(result.messages[-1], "content", "")),
        calls=tuple(
            Call(id=call.id, tool=call.name, arguments=json.loads(call.arguments))
            for event in made
            for call in event.content
        ),
        errors=tuple(
            f"{item.name}: {item.content}"
            for event in ended
            for item in event.content
            if item.is_error
        ),
    )
