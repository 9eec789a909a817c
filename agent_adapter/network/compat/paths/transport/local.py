"""The names of `ag2.network.transport.local`."""

from agent_adapter.network import (
    LocalLink as LocalLink,
)
from agent_adapter.network import (
    LocalLinkClient as LocalLinkClient,
)
from agent_adapter.network import (
    LocalLinkEndpoint as LocalLinkEndpoint,
)
