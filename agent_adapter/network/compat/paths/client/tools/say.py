"""The names of `ag2.network.client.tools.say`."""

from agent_adapter.network.compat.tools import (
    make_say_tool as make_say_tool,
)
