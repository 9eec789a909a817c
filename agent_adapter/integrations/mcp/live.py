"""One connection to a server, from its handshake to its end, held open by a task of its own."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.inert import visible
from agent_adapter.exec.scope import current_scope
from agent_adapter.integrations.mcp.flights import Flight, current
from agent_adapter.integrations.mcp.transports import Watch

log = logging.getLogger("agent_adapter.integrations.mcp")

_CLOSE_SECONDS = 15.0


class LiveClient:
    """A client that is entered and left in one task, as its cancel scopes demand.

    `users` are the calls that use it, `retired` lets no further one in. `by_turns` lets one call at
    a time be under way: `flight`.
    """

    def __init__(self, watch: Watch, look: Callable[[LiveClient], Awaitable[None]] | None) -> None:
        self.client: Any = None
        self.watch = watch
        self.watched = False
        self.by_turns = False
        self.users = 0
        self.used = False
        self.retired = False
        self.flight: Flight | None = None
        self._look = look
        self._ended = False
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._turns = asyncio.Lock()

    @property
    def usable(self) -> bool:
        """Whether a further call may use it."""
        return not (self._ended or self.retired or self.watch.session_lost)

    def is_lost(self, exc: Exception) -> bool:
        """Whether `exc` came because the connection or its session is gone."""
        return not self.usable or is_lost(exc)

    def reason(self, exc: BaseException) -> str:
        """The cause in a line, for a person."""
        # Over HTTP the SDK only says that there was an error; what it was, the watch has seen.
        text = self.watch.problem
        cause = root_of(exc)
        if not text:
            plain = isinstance(cause, IntegrationError)
            text = str(cause) if plain else f"{type(cause).__name__}: {cause}"
        return visible(" ".join(text.split())[:500])

    @asynccontextmanager
    async def turn(self, flight: Flight) -> AsyncIterator[None]:
        """The time in which this call is under way."""
        if not self.by_turns:
            yield
            return
        async with self._turns:
            self.flight = flight
            try:
                yield
            finally:
                self.flight = None

    async def heard(self, message: Any) -> None:
        """Take a notification of the server."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    async def open(self, seconds: float) -> None:
        """Connect, or raise why not: never in a group, and never later than in `seconds`."""
        self._loop = asyncio.get_running_loop()
        # What the first caller's context says of its call must not be said of later ones.
        context = contextvars.copy_context()
        context.run(current.set, None)
        context.run(current_scope.set, None)
        self._task = asyncio.create_task(self._hold(), context=context)
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            await self._stop()
            raise IntegrationError(f"no answer within {seconds:g} s") from None
        except BaseException:
            await self._stop()
            raise
        if self._ended:
            raise self._failure or ConnectionError("the connection ended at once")

    async def close(self) -> None:
        """End it; in the loop that it belongs to this waits for the end, in bounds."""
        task, loop = self._task, self._loop
        if task is None or loop is None or loop.is_closed():
            return
        if loop is not asyncio.get_running_loop():
            self.abandon()
            return
        self._closing.set()
        await asyncio.wait({task}, timeout=_CLOSE_SECONDS)
        if not task.done():
            await self._stop()

    def abandon(self) -> None:
        """Have it end by itself: it belongs to another loop."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):  # closed in between
                loop.call_soon_threadsafe(self._closing.set)

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)

    async def _hold(self) -> None:
        try:
            async with self.client:
                self._ready.set()
                watching = asyncio.create_task(self._watch())
                try:
                    await self._closing.wait()
                finally:
                    watching.cancel()
                    await asyncio.wait({watching}, timeout=_CLOSE_SECONDS)
        except Exception as exc:
            self._failure = root_of(exc)
            log.debug("a connection ended: %r", self._failure)
        finally:
            self._ended = True
            self._ready.set()

    async def _watch(self) -> None:
        """Look at the tools again whenever the server says that they have changed."""
        if self._look is None:
            return
        await asyncio.gather(self._listen(), self._look_again(self._look))

    async def _listen(self) -> None:
        """Hear of changes in the protocol where each request stands for itself."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        tools = self.client.server_capabilities.tools
        modern = self.client.protocol_version in MODERN_PROTOCOL_VERSIONS
        if not modern or (tools is not None and not tools.list_changed):
            return
        try:
            async with self.client.listen(tools_list_changed=True) as events:
                self._changed.set()  # of what changed until now nothing was told
                async for _ in events:
                    self._changed.set()
        except Exception as exc:
            log.debug("the server's changes are not heard of: %r", exc)

    async def _look_again(self, look: Callable[[LiveClient], Awaitable[None]]) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await look(self)
            except Exception as exc:
                log.warning("the changed tools of a server cannot be looked at: %r", exc)


def given_client(client: Any) -> LiveClient:
    """A connected client that belongs to the caller, as it is."""
    live = LiveClient(Watch(), None)
    live.client = client
    return live


def is_lost(exc: BaseException) -> bool:
    """Whether the SDK says that the connection or the session is gone."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    cause = root_of(exc)
    return isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED


def root_of(exc: BaseException) -> BaseException:
    """The first error in a group that is no group."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc
