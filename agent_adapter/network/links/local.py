"""`LocalLink`: the hub is in this process, and nothing lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_adapter.network.hub.hub import Hub
    from agent_adapter.network.links.base import HubLike

__all__ = ["LocalLink"]


class LocalLink:
    """A link to `hub` in the same process and event loop."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def connect(self) -> Hub:
        """The hub itself."""
        return self.hub

    async def disconnect(self, hub: HubLike) -> None:
        """Nothing: there is no connection to let go of."""
