"""A relay between a client and a hub that cuts the connection at a chosen frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class FrameRelay:
    """Passes messages on in both directions, and counts them.

    Attributes:
        cut_at: the number of the message at which both connections break; 0 is never.
        loses: whether that message is lost, or still arrives before the cut.
        frames: messages since `arm`.
        cuts: how often it has cut.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.cut_at = 0
        self.loses = False
        self.frames = 0
        self.cuts = 0
        self.port = 0

    @property
    def url(self) -> str:
        """Where a client connects instead of to the hub."""
        return f"ws://127.0.0.1:{self.port}"

    def arm(self, cut_at: int, *, loses: bool) -> None:
        """Cut at the `cut_at`th message from now on."""
        self.frames, self.cut_at, self.loses = 0, cut_at, loses

    async def take(self, client: Any) -> None:
        """Relay one connection."""
        from websockets.asyncio.client import connect

        async with connect(self._target, max_size=None, proxy=None) as hub:
            await asyncio.gather(self._pass_on(client, hub), self._pass_on(hub, client))

    async def _pass_on(self, source: Any, sink: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            async for message in source:
                self.frames += 1
                hit = self.frames == self.cut_at
                if not (hit and self.loses):
                    await sink.send(message)
                if hit:
                    self.cuts += 1
                    break
        except ConnectionClosed:
            pass
        finally:
            source.transport.abort()
            sink.transport.abort()


@asynccontextmanager
async def frame_relay(target: str) -> AsyncIterator[FrameRelay]:
    """A relay to the hub at `target`."""
    from websockets.asyncio.server import serve

    made = FrameRelay(target)
    async with serve(made.take, "127.0.0.1", 0, max_size=None) as server:
        made.port = next(iter(server.sockets)).getsockname()[1]
        yield made
