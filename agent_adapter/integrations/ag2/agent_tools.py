"""Tools that an AG2 agent has for as long as it takes part in a network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.ag2.export import ag2_tool
from agent_adapter.integrations.base import is_instance_of


def is_ag2(agent: Any) -> bool:
    """Whether `agent` is an `ag2.Agent`, told by its class without importing AG2."""
    return is_instance_of(agent, "ag2.agent", "Agent")


def equip(agent: Any, specs: Iterable[ToolSpec], executor: ToolRunner) -> None:
    """Add `specs` to the agent's own tools; they take the place of earlier ones of their names."""
    made = [ag2_tool(spec, executor=executor) for spec in specs]
    names = tuple(f"agent_adapter:{tool.name}:" for tool in made)
    agent.tools[:] = [tool for tool in agent.tools if not _source(tool).startswith(names)]
    for tool in made:
        agent.add_tool(tool)


def set_policy(agent: Any, policy: Any) -> None:
    """Add a policy to the agent's prompts; it takes over from an earlier one of its class."""
    for known in agent.assembly:
        if type(known) is type(policy):
            vars(known).update(vars(policy))
            return
    agent.add_policy(policy)


def _source(tool: Any) -> str:
    return str(getattr(tool, "source", None) or "")
