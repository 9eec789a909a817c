"""The names of `ag2.network.hub.listener`."""

from agent_adapter.network import (
    BaseHubListener as BaseHubListener,
)
from agent_adapter.network import (
    HubListener as HubListener,
)
