"""`serve`: lets other processes join a hub over WebSockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from agent_adapter.core.errors import AuthError, NetworkError, ProtocolError
from agent_adapter.core.extras import check_installed
from agent_adapter.core.hosts import is_loopback
from agent_adapter.network.auth import Anybody, Authenticator
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.links.frames import (
    FRAME_LIMIT,
    VERSION,
    Hello,
    Response,
    decode_client_frame,
    encode_frame,
)
from agent_adapter.network.links.remote_participants import RemoteParticipants
from agent_adapter.network.links.session import RecentAnswers, ServerSession

_log = logging.getLogger("agent_adapter.network")

_SHORTEST_INSTANCE = 32
_HELLO_SECONDS = 10.0


def serve(
    hub: Hub,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    authenticator: Authenticator | None = None,
    origins: Sequence[str] = (),
    ssl_context: ssl.SSLContext | None = None,
    trusted: Sequence[str] = (),
    grace: float = 30.0,
    connections: int = 100,
) -> WebSocketServer:
    """A server for `hub`, to be entered with `async with`; its `url` is for `WebSocketLink`.

    Args:
        hub: the hub that other processes join.
        host: the address to listen on. Any but a loopback address requires an `authenticator`.
        port: the port; 0 takes a free one.
        authenticator: decides who may join, and under which names; without it every process on
            this machine may, under any name.
        origins: web pages that may connect, as `https://hub.example`; others are refused.
        ssl_context: serves `wss://`.
        trusted: names, or globs over them, whose words do not taint a channel. Messages of other
            remote participants taint it, as reading a foreign page would.
        grace: seconds in which a client that lost its connection may return to its turns.
        connections: the most at once of one token; without tokens, of all clients together.

    Raises:
        AuthError: no authenticator, and the host is not this machine.
        MissingDependency: the package `websockets` is missing.
    """
    if authenticator is None and not is_loopback(host):
        raise AuthError(
            f"serving on {host!r} without an authenticator would let anybody join as anybody; "
            "pass authenticator=TokenAuth({token: [names]}), or serve on 127.0.0.1"
        )
    return WebSocketServer(
        hub,
        host,
        port,
        authenticator=authenticator if authenticator is not None else Anybody(),
        origins=origins,
        ssl_context=ssl_context,
        trusted=trusted,
        grace=grace,
        connections=connections,
    )


class WebSocketServer:
    """Accepts connections of other processes to a hub; see `serve`."""

    def __init__(
        self,
        hub: Hub,
        host: str,
        port: int,
        *,
        authenticator: Authenticator,
        origins: Sequence[str],
        ssl_context: ssl.SSLContext | None,
        trusted: Sequence[str],
        grace: float,
        connections: int,
    ) -> None:
        self.hub = hub
        self._host = host
        self._port = port
        self._auth = authenticator
        self._origins = list(origins)
        self._ssl = ssl_context
        self._remote = RemoteParticipants(hub, trusted, grace)
        self._answers = RecentAnswers()
        self._server: Any = None
        self._most = connections
        self._closing: set[asyncio.Future[None]] = set()
        self._open: Counter[str | None] = Counter()
        self._names: WeakKeyDictionary[Any, Sequence[str]] = WeakKeyDictionary()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        if self._server is None:
            raise NetworkError("the server is not running; enter it with `async with`")
        return int(next(iter(self._server.sockets)).getsockname()[1])

    @property
    def url(self) -> str:
        """Where it listens, as `WebSocketLink` takes it."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'ws' if self._ssl is None else 'wss'}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen."""
        check_installed("ws", ["websockets"])
        from websockets.asyncio.server import serve as listen
        from websockets.typing import Origin

        if self._ssl is None and not is_loopback(self._host):
            _log.warning(
                "the hub listens on %s without TLS: tokens and messages can be read on the way, "
                "unless something in front of it encrypts them",
                self._host,
            )
        self._server = await listen(
            self._talk,
            self._host,
            self._port,
            process_request=self._admit,
            origins=[None, *map(Origin, self._origins)],
            ssl=self._ssl,
            max_size=FRAME_LIMIT,
            server_header=None,
        )

    async def close(self) -> None:
        """Close all connections; the hub releases the turns that they were running."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        await self._remote.close()
        await self._answers.close()

    async def __aenter__(self) -> WebSocketServer:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _admit(self, connection: Any, request: Any) -> Any:
        """Refuse a handshake, or note the names that the connection may use."""
        # Proxies and servers log addresses: a token in a query would end up in their logs.
        if "?" in request.path:
            return connection.respond(
                HTTPStatus.BAD_REQUEST, "a query is no place for a token; send a header\n"
            )
        header = request.headers.get("Authorization")
        credential = None
        if header is not None:
            scheme, _, credential = header.partition(" ")
            if scheme.lower() != "bearer":
                return connection.respond(HTTPStatus.UNAUTHORIZED, "send a bearer token\n")
        try:
            names = await self._auth.names_for(credential)
        except AuthError as exc:
            _log.warning("a connection was turned away: %s", exc)
            return connection.respond(HTTPStatus.UNAUTHORIZED, "unknown token\n")
        who = None if isinstance(self._auth, Anybody) else credential
        if self._open[who] >= self._most:
            _log.warning("a connection was turned away: its token has %d already", self._most)
            return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, "too many connections\n")
        self._names[connection] = names
        self._open[who] += 1
        # Also for a handshake that is cut off before it ends.
        closed = asyncio.ensure_future(connection.wait_closed())
        closed.add_done_callback(lambda _: self._left(who))
        self._closing.add(closed)
        closed.add_done_callback(self._closing.discard)
        return None

    def _left(self, who: str | None) -> None:
        self._open[who] -= 1
        if not self._open[who]:
            del self._open[who]

    async def _talk(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        names = self._names.pop(connection, ())
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = decode_client_frame(await connection.recv())
            if not isinstance(hello, Hello) or len(hello.instance) < _SHORTEST_INSTANCE:
                raise ProtocolError("the first frame is a hello with a secret of 32 characters")
            if hello.version != VERSION:
                raise ProtocolError(f"this hub speaks version {VERSION}, not {hello.version}")
        except (ConnectionClosed, TimeoutError):
            return
        except ProtocolError as exc:
            await _refuse(connection, exc)
            return
        session = ServerSession(self._remote, self._answers, connection, hello.instance, names)
        try:
            await session.run()
        except ConnectionClosed:
            pass
        except ProtocolError as exc:
            await _refuse(connection, exc)


async def _refuse(connection: Any, error: ProtocolError) -> None:
    with contextlib.suppress(Exception):
        for text in encode_frame(Response(id=0, error=error.kind, message=str(error))):
            await connection.send(text)
        await connection.close(1002, error.kind)
