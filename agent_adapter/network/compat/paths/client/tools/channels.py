"""The names of `ag2.network.client.tools.channels`."""

from agent_adapter.network.compat.tools import (
    make_channels_tool as make_channels_tool,
)
