"""`WsLink` and `serve_ws`: WebSockets by AG2's names, with this package's frames or AG2's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator
from typing import Any

from agent_adapter.core.errors import NotConnected
from agent_adapter.core.extras import check_installed
from agent_adapter.core.hosts import is_loopback
from agent_adapter.network.auth import Anybody
from agent_adapter.network.compat.frames import Frame, WelcomeFrame, decode_frame, encode_frame
from agent_adapter.network.compat.ids import make_id
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.links.frames import FRAME_LIMIT
from agent_adapter.network.links.server import WebSocketServer
from agent_adapter.network.links.websocket import WebSocketLink

_log = logging.getLogger("agent_adapter.network")

_FIRST_SECONDS = 10.0


class WsLink(WebSocketLink):
    """A link to the hub that `serve_ws` or `serve` offers at `url`.

    A `HubClient` over it uses the package's own connection, which survives a cut. `client()` is for
    programs that exchange AG2's frames themselves.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        ping_interval: float | None = 20.0,
        ping_timeout: float | None = 20.0,
        open_timeout: float = 10.0,
        reconnect_for: float = 60.0,
    ) -> None:
        super().__init__(
            url,
            token=token,
            ssl_context=ssl_context,
            open_timeout=open_timeout,
            reconnect_for=reconnect_for,
        )
        self._pings = ping_interval, ping_timeout

    def client(self) -> WsLinkClient:
        """A client that is not open yet."""
        interval, timeout = self._pings
        return WsLinkClient(
            self.url,
            token=self._token,
            ssl_context=self._ssl,
            ping_interval=interval,
            ping_timeout=timeout,
            open_timeout=self._open_timeout,
        )


class _Ws:
    """A WebSocket that carries AG2's frames as JSON texts."""

    def __init__(self) -> None:
        self._socket: Any = None
        self._closed = False

    async def send_frame(self, frame: Frame) -> None:
        """Send a frame; nothing once the connection has ended."""
        from websockets.exceptions import ConnectionClosed

        if not self._closed and self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(json.dumps(encode_frame(frame)))

    async def frames(self) -> AsyncIterator[Frame]:
        """What the other end sends; what is no frame is logged and left out."""
        from websockets.exceptions import ConnectionClosed

        if self._socket is None:
            raise NotConnected("this connection is not open; await open() first")
        with contextlib.suppress(ConnectionClosed):
            async for text in self._socket:
                try:
                    frame = decode_frame(json.loads(text))
                except (ValueError, TypeError, RecursionError) as exc:
                    _log.warning("a message that is no frame was left out: %s", exc)
                    continue
                self._seen(frame)
                yield frame

    def _seen(self, frame: Frame) -> None:
        """Note what a frame says of the connection."""

    async def close(self) -> None:
        """End the connection; a second call does nothing."""
        if not self._closed:
            self._closed = True
            if self._socket is not None:
                await self._socket.close()


class WsLinkClient(_Ws):
    """A client's end of a WebSocket with AG2's frames; it does not connect again by itself."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        ping_interval: float | None = 20.0,
        ping_timeout: float | None = 20.0,
        open_timeout: float | None = 10.0,
    ) -> None:
        super().__init__()
        self._url = url
        self._token = token
        self._settings: dict[str, Any] = {
            "ping_interval": ping_interval,
            "ping_timeout": ping_timeout,
            "open_timeout": open_timeout,
        } | ({} if ssl_context is None else {"ssl": ssl_context})
        self._endpoint_id = ""

    @property
    def endpoint_id(self) -> str:
        """The id that the hub gave the connection; empty before its welcome."""
        return self._endpoint_id

    async def open(self) -> None:
        """Connect; a hello is the caller's to send."""
        check_installed("ws", ["websockets"])
        from websockets.asyncio.client import connect

        if self._socket is None:
            headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
            self._socket = await connect(
                self._url,
                additional_headers=headers,
                max_size=FRAME_LIMIT,
                proxy=None,
                **self._settings,
            )

    def _seen(self, frame: Frame) -> None:
        if isinstance(frame, WelcomeFrame):
            self._endpoint_id = frame.endpoint_id


class WsLinkEndpoint(_Ws):
    """The hub's end of a WebSocket with AG2's frames."""

    def __init__(self, endpoint_id: str, ws: Any) -> None:
        super().__init__()
        self.endpoint_id = endpoint_id
        self.agent_id: str | None = None
        self._socket = ws


class _Server(WebSocketServer):
    """Speaks with each client as the client's first message does."""

    @property
    def sockets(self) -> Any:
        """The sockets that it listens on."""
        return self._server.sockets

    async def _talk(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                first = await connection.recv()
        except (ConnectionClosed, TimeoutError):
            return
        again = _Again(connection, first)
        if not _is_ag2(first):
            self._names[again] = self._names.pop(connection, ())
            await super()._talk(again)
            return
        if not isinstance(self._auth, Anybody):
            await connection.close(1008, "this server takes tokens")
            return
        endpoint = WsLinkEndpoint(make_id(), again)
        await self.hub.attach_endpoint(endpoint)


class _Again:
    """A connection whose first message is read again."""

    def __init__(self, connection: Any, first: str | bytes) -> None:
        self._connection = connection
        self._first: str | bytes | None = first
        self.send = connection.send
        self.close = connection.close

    async def recv(self) -> str | bytes:
        """The next message."""
        first, self._first = self._first, None
        return await self._connection.recv() if first is None else first

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        if self._first is not None:
            yield await self.recv()
        async for message in self._connection:
            yield message


@contextlib.asynccontextmanager
async def serve_ws(
    hub: Hub,
    host: str,
    port: int,
    *,
    ssl_context: ssl.SSLContext | None = None,
    allow_unauthenticated: bool = False,
) -> AsyncIterator[WebSocketServer]:
    """Serve `hub` to `WsLink`s, with what its `AuthRegistry` asks of each participant.

    `serve(authenticator=TokenAuth(...))` asks each connection for a token instead. Raises
    `ValueError` for a host that others can reach, if the hub's registry takes participants that
    prove nothing; `allow_unauthenticated` permits it.
    """
    if "none" in hub.auth_schemes and not is_loopback(host):
        if not allow_unauthenticated:
            raise ValueError(
                f"serve_ws on {host!r} would let anybody join as anybody: open the hub with an "
                "AuthRegistry without NoAuth, serve on 127.0.0.1, or pass "
                "allow_unauthenticated=True"
            )
        _log.warning("serve_ws on %s lets anybody join as anybody", host)
    server = _Server(
        hub,
        host,
        port,
        authenticator=Anybody(),
        origins=(),
        ssl_context=ssl_context,
        trusted=(),
        grace=30.0,
        connections=100,
    )
    async with server:
        yield server


def _is_ag2(first: str | bytes) -> bool:
    """Whether a first message is a frame of AG2's: a hello with a name, or a request."""
    try:
        data = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and ("name" in data or "request_id" in data)
