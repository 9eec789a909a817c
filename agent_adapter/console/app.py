"""The console as an ASGI application."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from agent_adapter.console import (
    approvals,
    channels,
    event_streams,
    in_doubt,
    runs,
    sign_in,
    tools,
)
from agent_adapter.console.api import operations as api
from agent_adapter.console.middleware import SecurityMiddleware
from agent_adapter.console.pages import Console, console_of
from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import LOOPBACK, Settings, TrustedProxy
from agent_adapter.core.errors import AgentAdapterError, StoreError

if TYPE_CHECKING:
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.store.base import Store

__all__ = ["create_app"]

_STATIC = Path(__file__).parent / "static"


def create_app(
    store: Store,
    *,
    registry: ToolRegistry | None = None,
    tenant: str = "",
    hosts: Collection[str] = LOOPBACK,
    trusted_proxy: TrustedProxy | None = None,
    reviewer_keys: str | os.PathLike[str] | None = None,
    https: bool | None = None,
    requests_per_minute: int = 600,
) -> Starlette:
    """The console over `store`, to be served by any ASGI server; everybody signs in first.

    `registry` gives schemas for forms and the page of tools. `tenant` is whose records are shown.
    `hosts` are the host names it answers to. `trusted_proxy` lets people in whom a proxy names;
    the server must then not rewrite the peer's address (uvicorn: `proxy_headers=False`).
    `reviewer_keys` is a folder with `NAME.key` for each reviewer whose decisions are signed here.
    `https` says whether browsers come over HTTPS; `None` takes each request's word. A session or
    token may ask `requests_per_minute` times over time, and act a fifth as often.

    Raises:
        AgentAdapterError: `reviewer_keys` is no folder, or `requests_per_minute` below 1.
    """
    keys = None if reviewer_keys is None else Path(reviewer_keys)
    if keys is not None and not keys.is_dir():
        raise AgentAdapterError(f"reviewer_keys: {keys} is no folder; give one with NAME.key files")
    if requests_per_minute < 1:
        raise AgentAdapterError(f"requests_per_minute is 1 or more, not {requests_per_minute}")
    settings = Settings(
        store=store,
        registry=registry,
        tenant=tenant,
        hosts=frozenset(hosts),
        proxy=trusted_proxy,
        keys=keys,
        https=https,
        per_minute=requests_per_minute,
    )
    sections = (sign_in, approvals, runs, in_doubt, channels, tools, event_streams)
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=_STATIC), name="static"),
            Mount("/api/v1", routes=api.ROUTES),
            *(route for section in sections for route in section.ROUTES),
        ],
        middleware=[Middleware(SecurityMiddleware, hosts=settings.hosts, https=https)],
        exception_handlers={
            HTTPException: _http_problem,
            StoreError: _store_problem,
        },
    )
    app.state.console = Console(settings)
    return app


async def _http_problem(request: Request, exc: Exception) -> Response:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    text = {404: "there is no such page", 405: "this page does not take that"}.get(status, str(exc))
    headers = getattr(exc, "headers", None)
    return _refused(request, Problem(status, "http", text), headers)


async def _store_problem(request: Request, exc: Exception) -> Response:
    """What a store cannot look for is the sender's; what it cannot read is ours."""
    theirs = "cannot be looked for" in str(exc)
    problem = Problem(422 if theirs else 503, "store-error", str(exc))
    return _refused(request, problem)


def _refused(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    if request.url.path.startswith("/api/"):
        response: Response = api.problem_response(problem)
    else:
        response = console_of(request).refuse(request, problem)
    response.headers.update(headers or {})
    return response
