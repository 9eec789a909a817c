"""`WebSocketLink`: a hub in another process, or on another machine."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from agent_adapter.core.errors import AccessDeniedError, AuthError, NetworkError
from agent_adapter.core.extras import check_installed
from agent_adapter.network.links.connection import Socket
from agent_adapter.network.links.frames import FRAME_LIMIT
from agent_adapter.network.links.operations import HubLike
from agent_adapter.network.links.remote_hub import RemoteHub


class WebSocketLink:
    """A link to the hub that listens at `url`, as `ws://127.0.0.1:8765` or `wss://hub.example`.

    Attributes:
        url: where the hub listens; without a token or password.

    `token` is sent in a header. `ssl_context` is for private certificates. When the connection is
    lost, the client reconnects within `reconnect_for` seconds and receives what it missed.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        reconnect_for: float = 60.0,
        open_timeout: float = 10.0,
    ) -> None:
        _check_url(url)
        self.url = url
        self._token = token
        self._ssl = ssl_context
        self._reconnect_for = reconnect_for
        self._open_timeout = open_timeout

    async def connect(self) -> HubLike:
        """A new connection to the hub.

        Raises:
            AuthError: the hub refuses the token.
            NetworkError: no server answers at the address.
            MissingDependency: the package `websockets` is missing.
        """
        check_installed("ws", ["websockets"])
        hub = RemoteHub(  # type: ignore[abstract]  # its operations are made from the table
            self._dial, reconnect_for=self._reconnect_for
        )
        await hub.open()
        return hub

    async def disconnect(self, hub: HubLike) -> None:
        """Close a connection that `connect` made; a hub of another link is ignored."""
        if isinstance(hub, RemoteHub):
            await hub.aclose()

    async def _dial(self) -> Socket:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus

        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        settings: dict[str, Any] = {} if self._ssl is None else {"ssl": self._ssl}
        try:
            socket = await connect(
                self.url,
                additional_headers=headers,
                max_size=FRAME_LIMIT,
                open_timeout=self._open_timeout,
                proxy=None,
                **settings,
            )
        except InvalidStatus as exc:
            raise _refusal(self.url, exc.response.status_code) from None
        except (OSError, InvalidHandshake) as exc:
            raise NetworkError(f"no hub answers at {self.url}: {exc}") from exc
        return _Socket(socket)

    def __repr__(self) -> str:
        return f"WebSocketLink({self.url!r})"


class _Socket:
    """A WebSocket that raises `OSError` when the connection is lost."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def send(self, message: str) -> None:
        """Send one text."""
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message)
        except ConnectionClosed as exc:
            raise ConnectionResetError(str(exc)) from None

    async def close(self) -> None:
        """Close the connection."""
        await self._socket.close()

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """The received texts; `ConnectionResetError` if the end comes without a close frame."""
        from websockets.exceptions import ConnectionClosedError

        try:
            async for text in self._socket:
                yield text
        except ConnectionClosedError as exc:
            raise ConnectionResetError(str(exc)) from None


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise ValueError(f"a hub's address is ws://host:port or wss://host, not {parts.scheme}:…")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError(
            "a hub's address has no query, fragment or user: logs keep addresses; pass token=…"
        )


def _refusal(url: str, status: int) -> NetworkError:
    if status == 401:
        return AuthError(f"the hub at {url} does not know this token; pass token=…")
    if status == 403:
        return AccessDeniedError(f"the hub at {url} takes no connection from here")
    return NetworkError(f"the server at {url} answers with status {status} and is no hub")
