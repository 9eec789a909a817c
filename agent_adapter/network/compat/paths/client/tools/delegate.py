"""The names of `ag2.network.client.tools.delegate`."""

from agent_adapter.network.compat.tools import (
    make_delegate_tool as make_delegate_tool,
)
