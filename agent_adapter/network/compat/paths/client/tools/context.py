"""The names of `ag2.network.client.tools.context`."""

from agent_adapter.network.compat.tools import (
    make_context_tool as make_context_tool,
)
