"""`NetworkPlugin`: the tools of a participant, in every channel and outside of channels."""

from __future__ import annotations

from typing import Any

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

    def attach(self) -> None:
        """Give the participant its tools: in its turns, and for an AG2 agent in every `ask`."""
        self.register(self.client.agent)

    def register(self, agent: Any) -> None:
        """Give `agent`, which acts for the participant, the tools; those of an earlier plugin go.

        An AG2 agent also learns its name from a policy of its prompt.
        """
        from agent_adapter.integrations.ag2 import agent_tools

        if not agent_tools.is_ag2(agent):
            self.client.tools = self.tools
            return
        agent_tools.equip(agent, self.tools, self.client.hub_client.executor)
        agent_tools.set_policy(agent, NetworkContextPolicy(self.client))


class NetworkContextPolicy:
    """Puts a participant's name and id before the prompts of its AG2 agent."""

    name = "network_context"

    def __init__(self, client: AgentClient) -> None:
        self._client = client

    async def apply(
        self, prompts: list[str], events: list[Any], context: Any
    ) -> tuple[list[str], list[Any]]:
        """The prompts after a line about who the agent is; the events as they are."""
        own = self._client
        return [f"You are {own.passport.name} (agent_id: {own.agent_id}).", *prompts], events
