"""The names of `ag2.network.client.task`."""

from agent_adapter.network import (
    ClientTask as ClientTask,
)
