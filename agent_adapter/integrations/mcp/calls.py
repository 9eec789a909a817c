"""What a request to an MCP server says of a call: its connection, its id and its caller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.integrations.wires.mcp import (
    bind,
    lasts,
    new_session_id,
    principal_of,
    session_of,
)


@dataclass(slots=True)
class _Connection:
    """What the server's lifespan gives: entered per connection, but only once for all of HTTP."""

    session: str = field(default_factory=new_session_id)


@asynccontextmanager
async def connection(server: Any) -> AsyncIterator[_Connection]:
    """The server's lifespan: an id for the connection."""
    yield _Connection()


def context_of(native: Any) -> ToolContext:
    """A context for one request: a `ServerRequestContext`, or `MCPServer`'s `Context`."""
    request = _request_of(native)
    if request is None:
        return bind(new_session_id(), None, bound_by="mcp")
    return bind(
        _session_id(request),
        request.request_id,
        bound_by="mcp",
        principal=_caller(),
        lasting=_is_ours(request) or lasts(request),
    )


def _request_of(native: Any) -> Any:
    """The request behind either kind of context; `None` for a call outside of a request."""
    if hasattr(native, "_request_context"):
        return native._request_context
    return native if hasattr(native, "lifespan_context") else None


def _session_id(request: Any) -> str:
    session: str = request.lifespan_context.session if _is_ours(request) else ""
    return session or session_of(request.session)


def _is_ours(request: Any) -> bool:
    """Whether our lifespan was entered for this connection alone, as over stdio."""
    return request.request is None and isinstance(request.lifespan_context, _Connection)


@cache
def _tokens() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import principal_components

    return get_access_token, principal_components


def _caller() -> str | None:
    current, components = _tokens()
    return principal_of(current(), components)
