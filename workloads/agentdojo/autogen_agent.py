"""Plays a script through a real AutoGen agent.

AutoGen tells a tool nothing of its conversation: the run and what the user said are a run scope's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent

from agent_adapter import Executor
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.autogen import autogen_tool
from workloads.agentdojo.scripted import Call, Played, Script
from workloads.autogen_model import ScriptedModel


async def play(script: Script, specs: Sequence[ToolSpec], executor: Executor) -> Played:
    """Run the agent to its end and read its history."""
    tools: list[Any] = [autogen_tool(spec, executor=executor) for spec in specs]
    calls = [[(call.id, call.tool, dict(call.arguments))] for call in script.calls]
    agent = AssistantAgent(
        "agentdojo",
        ScriptedModel(*calls, script.output),
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
