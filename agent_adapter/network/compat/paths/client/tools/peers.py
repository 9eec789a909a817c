"""The names of `ag2.network.client.tools.peers`."""

from agent_adapter.network.compat.tools import (
    make_peers_tool as make_peers_tool,
)
