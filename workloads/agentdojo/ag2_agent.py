"""Plays a script through a real AG2 agent with AG2's own scripted model."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ag2 import Agent
from ag2.events import ToolCallEvent, ToolErrorEvent
from ag2.testing import TestConfig

from agent_adapter import Executor
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.ag2 import ag2_tool
from workloads.agentdojo.scripted import Call, Played, Script

__all__ = ["play"]


async def play(
    script: Script,
    specs: Sequence[ToolSpec],
    executor: Executor,
    *,
    approval: ApprovalPort | None = None,
) -> Played:
    """Run the agent to its end and read its history; `approval` gates the held tools."""
    turns = [
        ToolCallEvent(id=call.id, name=call.tool, arguments=json.dumps(dict(call.arguments)))
        for call in script.calls
    ]
    agent = Agent(
        "agentdojo",
        config=TestConfig(*turns, script.output, raise_tool_errors=False),
        tools=[ag2_tool(spec, executor=executor, approval=approval) for spec in specs],
    )
    reply = await agent.ask(script.prompt)
    events = list(await reply.history.get_events())
    return Played(
        output=reply.body or "",
        calls=tuple(
            Call(id=event.id, tool=event.name, arguments=event.serialized_arguments)
            for event in events
            if isinstance(event, ToolCallEvent)
        ),
        errors=tuple(
            f"{event.name}: {event.error}" for event in events if isinstance(event, ToolErrorEvent)
        ),
    )
