"""The names of `ag2.network.client.network_client`."""

from agent_adapter.network import (
    NetworkClient as NetworkClient,
)
