"""The names of `ag2.network.remote`."""

from agent_adapter.network import (
    RemoteAgentProxy as RemoteAgentProxy,
)
