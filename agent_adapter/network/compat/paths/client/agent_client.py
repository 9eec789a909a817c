"""The names of `ag2.network.client.agent_client`."""

from agent_adapter.network import (
    AgentClient as AgentClient,
)
