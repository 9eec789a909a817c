"""Real Agno agents around the scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agno.agent import Agent

from agent_adapter.integrations.agno import resolve_requirements

from ._agno_model import ScriptedModel


def agent_of(tools: Iterable[Any], *turns: Any, **options: Any) -> Agent:
    """An agent whose model plays `turns` and then says "done"."""
    return Agent(
        model=ScriptedModel(turns=list(turns)), tools=list(tools), telemetry=False, **options
    )


async def settled(agent: Agent, output: Any, port: Any, registry: Any, **options: Any) -> Any:
    """The run after every pause of it was resolved by `port`."""
    while output.is_paused:
        await resolve_requirements(output, port, registry, **options)
        output = await agent.acontinue_run(run_response=output)
    return output


def failed(output: Any) -> list[Any]:
    """Whether each tool call of a run counts as failed for Agno."""
    return [tool.tool_call_error for tool in output.tools]


def offered(agent: Agent) -> list[Any]:
    """The tools as the model was offered them."""
    model = agent.model
    assert isinstance(model, ScriptedModel)
    return model.tools


def shown(agent: Agent) -> dict[str, str]:
    """What the model last read of each call, by call id."""
    model = agent.model
    assert isinstance(model, ScriptedModel)
    return model.shown()


def error_of(agent: Agent, call_id: str = "c1") -> dict[str, str]:
    """`{"kind", "message"}` as the model reads it of one call."""
    error: dict[str, str] = json.loads(shown(agent)[call_id])["error"]
    return error
