"""The names of `ag2.network.client.channel`."""

from agent_adapter.network import (
    Channel as Channel,
)
