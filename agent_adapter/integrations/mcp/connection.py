"""`MCPConnection`: a client of one server that outlives lost sessions, in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import IntegrationError, ToolFailed
from agent_adapter.core.inert import visible
from agent_adapter.integrations.mcp.elicitation import Ask, Questions
from agent_adapter.integrations.mcp.export import check_mcp
from agent_adapter.integrations.mcp.flights import Flight, current
from agent_adapter.integrations.mcp.keeper import ClientKeeper
from agent_adapter.integrations.mcp.listing import definitions_of, names_of
from agent_adapter.integrations.mcp.live import LiveClient, given_client, is_lost, root_of
from agent_adapter.integrations.mcp.pins import Definition
from agent_adapter.integrations.mcp.transports import Watch, client_of, target_of

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from mcp_types import CallToolResult

    Source = Client | StdioServerParameters | Server[Any] | MCPServer | str | Callable[[], Client]

log = logging.getLogger("agent_adapter.integrations.mcp")

_ASK_ELSEWHERE = (
    "ask= needs a client that is made here; give Client(…, elicitation_callback=) to your own, or "
    "pass the server's URL or parameters instead of a client"
)

Check = Callable[[list[Definition]], None]
"""Looks at what the server says of its tools now; what it raises stops the call unsent."""


class MCPConnection:
    """A client of one MCP server that lasts: `async with MCPConnection(…, name="files") as files`.

    `server` is a URL, the parameters of a subprocess, a server object of this process, a function
    that makes an `mcp.Client`, or a connected `mcp.Client`, which stays yours: it is used as it is.
    The connection is made at the first use and again when it or its session is lost, in a task of
    its own, so that no error comes out in a group and any task may close it. Calls may come from
    several tasks. `aclose`, or the end of `async with`, ends it and the subprocess; without
    `lasting` each use does that connects, and there is nothing to close.

    `ask` answers the server's questions to the user, each bound to the call it was asked in; in a
    write that a person has approved it is asked only with `ask_during_approved`. `headers` are sent
    with each HTTP request. `timeout` bounds connecting, and listing the tools, in seconds. `mode`
    is the SDK's: `"legacy"` begins with a handshake, `"auto"` finds out which protocol is spoken.

    Every error before a call is sent is an `IntegrationError` that names the server and the cause.
    """

    def __init__(
        self,
        server: Source,
        *,
        name: str,
        ask: Ask | None = None,
        ask_during_approved: bool = False,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        mode: str = "auto",
        lasting: bool = True,
    ) -> None:
        check_mcp()
        from mcp import Client

        if not name:
            raise IntegrationError("an MCP connection needs a name for the server: name='files'")
        if ask is not None and (isinstance(server, Client) or _is_factory(server)):
            raise TypeError(_ASK_ELSEWHERE)
        if headers and not isinstance(server, str):
            raise TypeError(f"headers= need a URL; {target_of(server)} has no HTTP requests")
        self.name = name
        self.target = target_of(server)
        self._server: Any = server
        self._factory: Callable[[], Any] | None = server if _is_factory(server) else None
        self._headers = headers
        self._timeout = timeout
        self._mode = mode
        self._questions = (
            Questions(server=name, ask=ask, during_approved=ask_during_approved)
            if ask is not None
            else None
        )
        self._listeners: list[Check] = []
        self._seen: list[Definition] | None = None
        self._lasting = lasting
        given = given_client(server) if isinstance(server, Client) else None
        self._keeper = ClientKeeper(name, self._connect, given=given, lasting=lasting)

    @property
    def connected(self) -> bool:
        """Whether there is a live connection now; a use makes one."""
        return self._keeper.connected

    async def open(self) -> None:
        """Connect now, to learn of an error early; a connection that is there is kept."""
        await self._keeper.leave(await self._keeper.enter())

    async def aclose(self) -> None:
        """End the connection and its subprocess; a second call does nothing.

        Calls under way end as lost. A client that was given to it stays open.
        """
        await self._keeper.aclose()

    async def __aenter__(self) -> MCPConnection:
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def on_list(self, listener: Check) -> None:
        """Have `listener` look at the tools whenever the server says that they have changed."""
        self._listeners.append(listener)

    async def tools(self) -> list[Definition]:
        """What the server says of its tools now: every page, past any cache."""
        async with self._listed() as (_, found):
            return found

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ctx: ToolContext | None = None,
        check: Check | None = None,
    ) -> CallToolResult:
        """The server's result for one call; cancelling it cancels the work at the server.

        The tools are listed first: a lost session is found, and `check` sees what the server says
        of them now. Progress goes to the subscribers of `ctx`.

        Raises:
            IntegrationError: the server was not reached; nothing was sent.
            ToolFailed: the call was sent, and the server refused it, or the connection was lost.
        """
        flight = Flight(tool, dict(arguments or {}), ctx)
        try:
            async with self._listed() as (live, found):
                if check is not None:
                    check(found)
                async with live.turn(flight):
                    flight.watched = live.watched
                    return await self._send(live, flight)
        except asyncio.CancelledError:
            flight.give_up()
            raise

    async def _send(self, live: LiveClient, flight: Flight) -> CallToolResult:
        token = current.set(flight)
        try:
            result: CallToolResult = await live.client.call_tool(
                flight.tool, dict(flight.arguments), progress_callback=flight.progress_of(self.name)
            )
        except Exception as exc:
            failed = self._failed(live, flight, exc)
            if failed is exc:
                raise
            raise failed from root_of(exc)
        finally:
            current.reset(token)
        return result

    def _failed(self, live: LiveClient, flight: Flight, exc: Exception) -> Exception:
        from mcp import MCPError

        if not flight.sent:
            return self._problem("be reached", live, exc)
        if is_lost(exc) or not live.usable:
            self._keeper.retire(live)
            return ToolFailed(
                f"the connection to {self.name} was lost after the call was sent: "
                f"{live.reason(exc)}"
            )
        if isinstance(exc, MCPError):
            said = visible(exc.message)[:2000]
            return ToolFailed(f"{self.name} answered the call with an error: {said}")
        return exc

    @asynccontextmanager
    async def _listed(self) -> AsyncIterator[tuple[LiveClient, list[Definition]]]:
        """A live connection with its tools; one that turns out to be lost is made anew, once."""
        live = await self._keeper.enter()
        try:
            found = await self._definitions_or_lost(live)
            if found is not None:
                yield live, found
                return
        finally:
            await self._keeper.leave(live)
        live = await self._keeper.enter()
        try:
            yield live, await self._definitions(live)
        finally:
            await self._keeper.leave(live)

    async def _definitions_or_lost(self, live: LiveClient) -> list[Definition] | None:
        """What the server lists; `None` over a connection that was good once and is lost now."""
        was_good = live.used
        try:
            return await self._definitions(live)
        except IntegrationError as exc:
            cause = exc.__cause__
            if not was_good or not isinstance(cause, Exception) or not live.is_lost(cause):
                raise
            self._keeper.retire(live)
            return None

    async def _definitions(self, live: LiveClient) -> list[Definition]:
        try:
            async with asyncio.timeout(self._timeout):
                found = await definitions_of(live.client)
        except TimeoutError as exc:
            self._keeper.retire(live)
            late = IntegrationError(f"no answer within {self._timeout:g} s")
            raise self._problem("list its tools", live, late) from exc
        except Exception as exc:
            raise self._problem("list its tools", live, exc) from root_of(exc)
        live.used = True
        if self._seen is None:
            self._seen = found
        return found

    async def _connect(self) -> LiveClient:
        watch = Watch()
        questions = self._questions
        live = LiveClient(watch, self._look if self._lasting else None)
        if self._factory is not None:
            live.client = self._factory()
        else:
            answering = _answering(live, questions) if questions is not None else None
            live.client, live.watched = client_of(
                self._server,
                watch,
                self._headers,
                mode=self._mode,
                elicitation_callback=answering,
                message_handler=live.heard,
            )
            live.by_turns = questions is not None and hasattr(self._server, "command")
        try:
            await live.open(self._timeout)
        except Exception as exc:
            raise self._problem("be reached", live, exc) from root_of(exc)
        return live

    async def _look(self, live: LiveClient) -> None:
        """Look at the tools again; what the server has changed is for the listeners."""
        async with asyncio.timeout(self._timeout):
            found = await definitions_of(live.client)
        if self._seen in (None, found):
            return
        self._seen = found
        log.warning("%s has changed its tools; it lists now: %s", self.name, names_of(found))
        for listener in self._listeners:
            listener(found)

    def _problem(self, what: str, live: LiveClient, exc: BaseException) -> IntegrationError:
        return IntegrationError(
            f"the MCP server {self.name!r} ({self.target}) cannot {what}: {live.reason(exc)}; "
            "check that it runs, and that its URL or command works on its own"
        )


def _answering(live: LiveClient, questions: Questions) -> Any:
    async def answering(context: Any, params: Any) -> Any:
        # Over a pipe nothing says which call a question belongs to, so calls go one by one.
        flight = current.get() or (live.flight if live.by_turns else None)
        return await questions.answer(flight, params)

    return answering


def _is_factory(server: Any) -> TypeGuard[Callable[[], Any]]:
    return callable(server) and not hasattr(server, "__aenter__")
