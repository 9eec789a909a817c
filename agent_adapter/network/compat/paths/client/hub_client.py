"""The names of `ag2.network.client.hub_client`."""

from agent_adapter.network import (
    HubClient as HubClient,
)
