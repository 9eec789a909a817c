"""Checks before every request, and security headers on every response."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_adapter.console.probes import PATHS as PROBES

BODY_LIMIT = 2 * 1024 * 1024
"""The maximum size of a request's body, in bytes."""

_POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "img-src 'self'",
        "object-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def host_of(header: str) -> str:
    """The host name in a `Host` header, in lower case and without the port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


class SecurityMiddleware:
    """Refuses unknown host names and large bodies, and adds security headers.

    The host name is checked because of DNS rebinding: a foreign site may resolve its own name to
    this machine, and browsers then treat its pages as this origin.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], https: bool | None) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._https = https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secure = self._https if self._https is not None else scope.get("scheme") == "https"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["cache-control"] = "no-store"
                if secure:
                    headers["strict-transport-security"] = "max-age=31536000"
            await send(message)

        problem = self._problem(Headers(scope=scope), scope["path"])
        await (problem or self._app)(scope, receive, with_headers)

    def _problem(self, headers: Headers, path: str) -> PlainTextResponse | None:
        host = host_of(headers.get("host", ""))
        if host not in self._hosts and path not in PROBES:
            text = f"unknown host name {host!r}: allow it with hosts=… or --name\n"
            return PlainTextResponse(text, status_code=421)
        if "transfer-encoding" in headers:
            # A chunked body has no length to check before it is read.
            return PlainTextResponse("send a content-length header\n", status_code=411)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            return PlainTextResponse(
                f"the body may have at most {BODY_LIMIT} bytes\n", status_code=413
            )
        return None
