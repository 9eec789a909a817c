"""`Link`: how a client reaches a hub."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from agent_adapter.network.links.operations import HubLike


class Link(Protocol):
    """A way to a hub; several clients may share one."""

    def connect(self) -> Awaitable[HubLike]:
        """The hub at the other end, ready to be asked."""
        ...

    async def disconnect(self, hub: HubLike) -> None:
        """Close a connection that `connect` made; the hub itself runs on."""
        ...
