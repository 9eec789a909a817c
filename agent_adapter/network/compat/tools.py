"""The tools of a participant as AG2 tools, for programs that build an agent's tools themselves."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.ag2.export import ag2_tool
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.compat.dependencies import CHANNEL_DEP
from agent_adapter.network.tools.channels import channels_tool
from agent_adapter.network.tools.context import context_tool
from agent_adapter.network.tools.delegate import delegate_tool
from agent_adapter.network.tools.peers import peers_tool
from agent_adapter.network.tools.say import say_tool
from agent_adapter.network.tools.tasks import tasks_tool

if TYPE_CHECKING:
    from ag2.tools.types import FunctionTool


def _made(build: Callable[[AgentClient], ToolSpec], client: AgentClient) -> FunctionTool:
    spec = build(client)
    tool: Any = ag2_tool(spec, executor=client.hub_client.executor)
    if "channel_id" in spec.json_schema().get("properties", {}):
        tool.run_with(_in_channel)
    return cast("FunctionTool", tool)


def _in_channel(event: Any, context: Any) -> Any:
    """The call with the id of the channel that AG2's conversation depends on, if it has none."""
    channel = context.dependencies.get(CHANNEL_DEP)
    args = json.loads(event.arguments or "{}") if channel is not None else None
    if not isinstance(args, dict) or args.get("channel_id"):
        return event
    placed = copy.copy(event)
    placed.arguments = json.dumps(args | {"channel_id": channel.channel_id})
    return placed


def make_channels_tool(agent_client: AgentClient) -> FunctionTool:
    """`channels` of one participant."""
    return _made(channels_tool, agent_client)


def make_context_tool(agent_client: AgentClient) -> FunctionTool:
    """`context` of one participant."""
    return _made(context_tool, agent_client)


def make_delegate_tool(agent_client: AgentClient) -> FunctionTool:
    """`delegate` of one participant."""
    return _made(delegate_tool, agent_client)


def make_peers_tool(agent_client: AgentClient) -> FunctionTool:
    """`peers` of one participant."""
    return _made(peers_tool, agent_client)


def make_say_tool(agent_client: AgentClient) -> FunctionTool:
    """`say` of one participant."""
    return _made(say_tool, agent_client)


def make_tasks_tool(agent_client: AgentClient) -> FunctionTool:
    """`tasks` of one participant."""
    return _made(tasks_tool, agent_client)
