"""The names of `ag2.network.transport.ws`."""

from agent_adapter.network import (
    WsLink as WsLink,
)
from agent_adapter.network import (
    WsLinkClient as WsLinkClient,
)
from agent_adapter.network import (
    WsLinkEndpoint as WsLinkEndpoint,
)
from agent_adapter.network import (
    serve_ws as serve_ws,
)
