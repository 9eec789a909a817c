"""How a server is reached, watched so that it is known whether a call was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_adapter.integrations.mcp.flights import current

if TYPE_CHECKING:
    from mcp import Client

# As the SDK's own client has them: a server may hold a response open.
_CONNECT_SECONDS = 30.0
_READ_SECONDS = 300.0
_UNAVAILABLE = 503
_INTERNAL_ERROR = -32603


@dataclass(slots=True, eq=False)
class Watch:
    """What was seen of one connection over HTTP."""

    problem: str = ""
    session_lost: bool = False

    def answered(self, request: Any, response: Any) -> None:
        """Note how the server answered a message."""
        if request.method != "POST":
            return
        failed = response.status_code >= 400
        said = f"HTTP {response.status_code} {response.reason_phrase}" if failed else ""
        self.problem = said
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            self.session_lost = True


def target_of(server: Any) -> str:
    """The server for an error's text: without credentials, queries and arguments."""
    if isinstance(server, str):
        parts = urlsplit(server)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}"
    command = getattr(server, "command", None)
    if isinstance(command, str):
        return f"the command {command!r}"
    return "its transport" if callable(server) else "the server in this process"


def client_of(
    server: Any, watch: Watch, headers: Mapping[str, str] | None, **callbacks: Any
) -> tuple[Client, bool]:
    """A client that is not connected yet, and whether what it sends is watched."""
    from mcp import Client, StdioServerParameters

    if isinstance(server, str):
        return Client(_over_http(server, watch, headers), **callbacks), True
    if isinstance(server, StdioServerParameters):
        from mcp.client.stdio import stdio_client

        return Client(_noted(stdio_client(server)), **callbacks), True
    return Client(server, **callbacks), False


@asynccontextmanager
async def _over_http(
    url: str, watch: Watch, headers: Mapping[str, str] | None
) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS)
    http = _http_client()(watch, headers=dict(headers or {}), timeout=timeout)
    async with http, _noted(streamable_http_client(url, http_client=http)) as streams:
        yield streams


@asynccontextmanager
async def _noted(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    async with transport as (reading, writing):
        yield reading, _NotingStream(writing)


class _NotingStream:
    """A stream to a server that counts what each call has handed to it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, item: Any, /) -> None:
        import anyio

        flight = current.get()
        if flight is None:
            await self._inner.send(item)
            return
        flight.handed += 1
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            flight.handed -= 1
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _NotingStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


@cache
def _http_client() -> Callable[..., Any]:
    """An HTTP client whose failed request is the answer to it, and no end of the connection."""
    import httpx2

    unreached = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)

    class WatchedClient(httpx2.AsyncClient):
        """Notes what failed, and that a request which reached nobody was not sent."""

        def __init__(self, watch: Watch, **options: Any) -> None:
            super().__init__(**options)
            self._watch = watch

        async def send(self, request: Any, **options: Any) -> Any:
            try:
                response = await super().send(request, **options)
            except httpx2.TransportError as exc:
                flight = current.get()
                if flight is not None and isinstance(exc, unreached):
                    flight.handed -= 1
                problem = f"{type(exc).__name__}: {exc}"
                error = _error_of(request, problem)
                if error is None:
                    raise
                self._watch.problem = problem
                return httpx2.Response(_UNAVAILABLE, json=error, request=request)
            self._watch.answered(request, response)
            return response

    return WatchedClient


def _error_of(request: Any, problem: str) -> dict[str, Any] | None:
    """The error that answers one JSON-RPC request; `None` for anything else."""
    if request.method != "POST":
        return None
    try:
        id = json.loads(request.content).get("id")
    except (ValueError, AttributeError):
        return None
    return {"jsonrpc": "2.0", "id": id, "error": {"code": _INTERNAL_ERROR, "message": problem}}
