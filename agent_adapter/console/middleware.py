"""What every request passes first: the host it names, its size, and headers on every answer."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BODY_LIMIT", "SecurityMiddleware", "host_of"]

BODY_LIMIT = 2 * 1024 * 1024
"""Bytes of a request's body, at most."""

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
    """The name in a `Host` header, lower case and without its port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


class SecurityMiddleware:
    """Refuses foreign host names (DNS rebinding) and bodies that are too large."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], https: bool | None) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._https = https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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

        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        host = host_of(headers.get("host", ""))
        if host not in self._hosts:
            text = f"this console does not answer to the host name {host!r}\n"
            return PlainTextResponse(text, status_code=421)
        if "transfer-encoding" in headers:
            return PlainTextResponse("send the body with its length\n", status_code=411)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            return PlainTextResponse(f"at most {BODY_LIMIT} bytes\n", status_code=413)
        return None
