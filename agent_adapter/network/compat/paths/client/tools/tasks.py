"""The names of `ag2.network.client.tools.tasks`."""

from agent_adapter.network.compat.tools import (
    make_tasks_tool as make_tasks_tool,
)
