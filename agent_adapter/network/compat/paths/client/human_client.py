"""The names of `ag2.network.client.human_client`."""

from agent_adapter.network import (
    HumanClient as HumanClient,
)
