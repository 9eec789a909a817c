"""The names of `ag2.network.client.checkpoint`."""

from agent_adapter.network import (
    HubBackedCheckpointStore as HubBackedCheckpointStore,
)
