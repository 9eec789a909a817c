"""The names of `ag2.network.transport.link`."""

from agent_adapter.network import (
    LinkClient as LinkClient,
)
from agent_adapter.network import (
    LinkEndpoint as LinkEndpoint,
)
from agent_adapter.network import (
    LinkFactory as LinkFactory,
)
