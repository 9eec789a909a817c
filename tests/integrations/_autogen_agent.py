"""Real AutoGen agents around a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core.models import FunctionExecutionResult

from workloads.autogen_model import ScriptedModel


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
