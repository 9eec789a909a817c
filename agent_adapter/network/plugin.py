"""`NetworkPlugin`: the tools of a participant, in every channel and outside of channels."""

from __future__ import annotations

from agent_adapter.core.tool import ToolSpec
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.tools.channels import channels_tool
from agent_adapter.network.tools.context import context_tool
from agent_adapter.network.tools.delegate import delegate_tool
from agent_adapter.network.tools.peers import peers_tool
from agent_adapter.network.tools.tasks import tasks_tool


class NetworkPlugin:
    """`peers`, `channels`, `tasks`, `context` and `delegate`, bound to one participant.

    No tool sends to the channel of the current turn: `delegate` and `channels(action="open")` open
    new channels.
    """

    def __init__(self, client: AgentClient) -> None:
        self.client = client
        self.tools: tuple[ToolSpec, ...] = (
            peers_tool(client),
            channels_tool(client),
            tasks_tool(client),
            context_tool(client),
            delegate_tool(client),
        )
