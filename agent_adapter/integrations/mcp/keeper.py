"""Which live client the calls of a connection use: made anew when it is lost, ended when unused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_adapter.core.errors import IntegrationError
from agent_adapter.integrations.mcp.live import LiveClient


@dataclass(slots=True, eq=False)
class _Here:
    """What a connection has in one event loop."""

    loop: asyncio.AbstractEventLoop
    lock: asyncio.Lock
    live: LiveClient | None = None


class ClientKeeper:
    """Hands out the one live client of the running loop, for one use at a time of each caller.

    With `lasting` it stays until `aclose`, else until its last user leaves. `given` is a client of
    the caller's, which is neither made nor ended here.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[LiveClient]],
        *,
        given: LiveClient | None,
        lasting: bool,
    ) -> None:
        self._name = name
        self._connect = connect
        self._given = given
        self._lasting = lasting
        self._closed = False
        self._here: _Here | None = None
        self._lives: set[LiveClient] = set()

    @property
    def connected(self) -> bool:
        """Whether there is a live client now."""
        live = self._given or (self._here.live if self._here is not None else None)
        return live is not None and live.usable

    async def enter(self) -> LiveClient:
        """The live client, for one use; connects where there is none."""
        self._refuse_closed()
        if self._given is not None:
            return self._given
        here = self._of_this_loop()
        async with here.lock:
            before = here.live
            if before is not None and not before.usable:
                self.retire(before)
                if before.users == 0:
                    await self._end(before)
                before = None
            live = before or await self._made()
            here.live = live
            live.users += 1
            return live

    async def leave(self, live: LiveClient) -> None:
        """End one use; one that is retired, or not to last, ends with its last user."""
        if live is self._given:
            return
        live.users -= 1
        if live.users == 0 and (live.retired or not self._lasting):
            self.retire(live)
            await self._end(live)

    def retire(self, live: LiveClient) -> None:
        """Let nobody else use it: its users end as they do."""
        live.retired = live is not self._given
        if self._here is not None and self._here.live is live:
            self._here.live = None

    async def aclose(self) -> None:
        """End every client that was made here; a second call does nothing."""
        self._closed = True
        self._here = None
        lives, self._lives = self._lives, set()
        for live in lives:
            await live.close()

    async def _made(self) -> LiveClient:
        live = await self._connect()
        if self._closed:  # meanwhile
            await live.close()
            self._refuse_closed()
        self._lives.add(live)
        return live

    async def _end(self, live: LiveClient) -> None:
        self._lives.discard(live)
        await live.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise IntegrationError(f"the connection to {self._name} was closed; make a new one")

    def _of_this_loop(self) -> _Here:
        """What belongs to the running loop: a client cannot be used from another."""
        loop = asyncio.get_running_loop()
        if self._here is None or self._here.loop is not loop:
            if self._here is not None and self._here.live is not None:
                self._here.live.abandon()
                self._lives.discard(self._here.live)
            self._here = _Here(loop, asyncio.Lock())
        return self._here
