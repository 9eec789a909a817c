"""`LocalLink`: a hub in the same process."""

from __future__ import annotations

from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.links.operations import HubLike


class LocalLink:
    """A link to `hub` in the same process and event loop."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def connect(self) -> HubLike:
        """The hub itself."""
        return self.hub

    async def disconnect(self, hub: HubLike) -> None:
        """Do nothing: a local hub has no connection."""
