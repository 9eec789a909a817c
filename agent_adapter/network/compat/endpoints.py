"""The two ends of a transport that carries AG2's frames, and those within one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from agent_adapter.network.compat.frames import Frame
from agent_adapter.network.compat.ids import make_id

Frames = asyncio.Queue[Frame | None]
"""Frames on their way; `None` is the end."""


class LinkClient(Protocol):
    """A client's end of a connection."""

    @property
    def endpoint_id(self) -> str:
        """The id that the hub gave the connection."""
        ...

    async def open(self) -> None:
        """Connect."""
        ...

    async def send_frame(self, frame: Frame) -> None:
        """Send a frame to the hub."""
        ...

    def frames(self) -> AsyncIterator[Frame]:
        """What the hub sends, until the connection ends."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class LinkEndpoint(Protocol):
    """The hub's end of a connection; give it to `Hub.attach_endpoint`."""

    endpoint_id: str
    agent_id: str | None

    async def send_frame(self, frame: Frame) -> None:
        """Send a frame to the client."""
        ...

    def frames(self) -> AsyncIterator[Frame]:
        """What the client sends, until the connection ends."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


@runtime_checkable
class LinkFactory(Protocol):
    """Makes clients of one hub."""

    def client(self) -> LinkClient:
        """A new client, not yet open."""
        ...


class _LocalEnd:
    def __init__(
        self, endpoint_id: str, client_to_hub: Frames, hub_to_client: Frames, *, of_hub: bool
    ) -> None:
        self.endpoint_id = endpoint_id
        both = client_to_hub, hub_to_client
        self._inwards, self._outwards = both if of_hub else reversed(both)
        self._closed = False

    async def send_frame(self, frame: Frame) -> None:
        """Send a frame; nothing after `close`."""
        if not self._closed:
            self._outwards.put_nowait(frame)

    async def frames(self) -> AsyncIterator[Frame]:
        """What the other end sends, until either end is closed."""
        while (frame := await self._inwards.get()) is not None:
            yield frame

    async def close(self) -> None:
        """End the connection at both ends; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._inwards.put_nowait(None)
            self._outwards.put_nowait(None)


class LocalLinkClient(_LocalEnd):
    """A client's end within one process."""

    def __init__(self, endpoint_id: str, client_to_hub: Frames, hub_to_client: Frames) -> None:
        super().__init__(endpoint_id, client_to_hub, hub_to_client, of_hub=False)

    async def open(self) -> None:
        """Nothing: the connection is there from the start."""


class LocalLinkEndpoint(_LocalEnd):
    """The hub's end within one process."""

    agent_id: str | None = None

    def __init__(self, endpoint_id: str, client_to_hub: Frames, hub_to_client: Frames) -> None:
        super().__init__(endpoint_id, client_to_hub, hub_to_client, of_hub=True)


def local_ends() -> tuple[LocalLinkClient, LocalLinkEndpoint]:
    """Both ends of a new connection."""
    endpoint_id = make_id()
    to_hub: Frames = asyncio.Queue()
    to_client: Frames = asyncio.Queue()
    return (
        LocalLinkClient(endpoint_id, to_hub, to_client),
        LocalLinkEndpoint(endpoint_id, to_hub, to_client),
    )
