"""Serving MCP: over stdio to the parent process, over HTTP to permitted callers."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import socket
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.hosts import is_loopback

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.auth.provider import AccessToken, TokenVerifier
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette

_SHORTEST = 16


class StaticTokens:
    """Bearer tokens that were handed out by hand: client name by token.

    Only hashes are kept, and every one is compared, so that the time taken tells nothing.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        for client, token in tokens.items():
            if len(token) < _SHORTEST:
                raise IntegrationError(
                    f"the token of {client!r} is shorter than {_SHORTEST} characters; "
                    'make one with: python -c "import secrets; print(secrets.token_urlsafe())"'
                )
        if not tokens:
            raise IntegrationError("there is no token: a server without one would refuse all calls")
        self._clients = {client: _hashed(token) for client, token in tokens.items()}

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who the token belongs to; `None` for one that was not handed out."""
        from mcp.server.auth.provider import AccessToken

        given = _hashed(token)
        known = [c for c, kept in self._clients.items() if hmac.compare_digest(kept, given)]
        if not known:
            return None
        # The token itself goes no further: nothing here may pass it on to another service.
        return AccessToken(token="", client_id=known[0], scopes=[])


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def mcp_http_app(
    server: Server[Any], *, host: str = "127.0.0.1", verifier: TokenVerifier | None = None
) -> Starlette:
    """The server as an ASGI application over streamable HTTP, at `/mcp`, for a server on `host`.

    With `verifier` each request needs a bearer token that it knows, and the token's owner is the
    principal of the calls. Beyond loopback one is required: `IntegrationError` without. On every
    loopback address a request must name this machine as its host, and as its origin if it has one:
    a page in a browser cannot reach the server under another name (DNS rebinding).
    """
    if verifier is None and not is_loopback(host):
        raise IntegrationError(
            f"{host} can be reached from other machines, and MCP has no check of its own: "
            "give a token check (verifier=StaticTokens({…}), or --tokens FILE), "
            "or serve on 127.0.0.1"
        )
    security = _this_machine_only(host) if is_loopback(host) else None
    if verifier is None:
        return server.streamable_http_app(host=host, transport_security=security)
    from mcp.server.auth.settings import AuthSettings

    settings = AuthSettings.model_validate(
        {"issuer_url": f"http://{_in_url(host)}", "resource_server_url": None}
    )
    return server.streamable_http_app(
        host=host, auth=settings, token_verifier=verifier, transport_security=security
    )


def _this_machine_only(host: str) -> TransportSecuritySettings:
    """The hosts and origins of a server that listens on a loopback address."""
    from mcp.server.transport_security import TransportSecuritySettings

    names = dict.fromkeys(("127.0.0.1", "localhost", "[::1]", _in_url(host)))
    ports = ("", ":*")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[name + port for name in names for port in ports],
        allowed_origins=[
            f"{scheme}://{name}{port}"
            for scheme in ("http", "https")
            for name in names
            for port in ports
        ],
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def terms_of(host: str, verifier: TokenVerifier | None) -> str:
    """Who may call a server on `host`, in a line for whoever starts it."""
    if verifier is not None:
        reach = "" if is_loopback(host) else "; without TLS: put a proxy that speaks it in front"
        return f"each request needs a bearer token{reach}"
    return "no token is asked for: every program of this machine may call; others cannot reach it"


async def serve_http(
    server: Server[Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    verifier: TokenVerifier | None = None,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal ends it; `on_start` is given the URL, with the port that was taken.

    TLS is not spoken here: beyond one machine put a proxy that does in front.
    """
    import uvicorn

    app = mcp_http_app(server, host=host, verifier=verifier)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", ws="none")
    bound = config.bind_socket()
    url = f"http://{_in_url(host)}:{bound.getsockname()[1]}/mcp"

    class Announced(uvicorn.Server):
        """Says where it is once it listens; before that a client would be refused."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started and on_start is not None:
                on_start(url)

    try:
        await Announced(config).serve(sockets=[bound])
    finally:
        bound.close()


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over stdin and stdout until it closes them."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        # What a tool prints would wait in stdout's buffer and reach the wire when it is restored.
        with contextlib.redirect_stdout(sys.stderr):
            await server.run(reading, writing, server.create_initialization_options())
