"""The console as an ASGI application."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

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
    health,
    in_doubt,
    runs,
    sign_in,
    tools,
)
from agent_adapter.console.api import routes as api
from agent_adapter.console.middleware import SecurityMiddleware
from agent_adapter.console.pages import Console, console_of
from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import LOOPBACK, Settings, TrustedProxy
from agent_adapter.core.errors import AgentAdapterError, StoreError
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.store.base import Store

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
    """The console over `store`, for any ASGI server; every page needs a sign-in.

    Args:
        store: the store to show.
        registry: the tools, for the schemas of forms and for the tools page.
        tenant: the tenant whose records are shown.
        hosts: the host names that the console answers to.
        trusted_proxy: a proxy that authenticates people. The server must not rewrite the peer's
            address then (uvicorn: `proxy_headers=False`).
        reviewer_keys: a folder with the signing key `NAME.key` of each reviewer who signs here.
        https: whether browsers use HTTPS; `None` takes the scheme of each request.
        requests_per_minute: the limit of each session and token; a fifth of it for actions.

    Raises:
        AgentAdapterError: `reviewer_keys` is not a folder, or `requests_per_minute` is below 1.
    """
    keys = None if reviewer_keys is None else Path(reviewer_keys)
    if keys is not None and not keys.is_dir():
        raise AgentAdapterError(
            f"reviewer_keys: {keys} is not a folder: create it, with a NAME.key for each reviewer"
        )
    if requests_per_minute < 1:
        raise AgentAdapterError(f"requests_per_minute is {requests_per_minute}: give 1 or more")
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
    sections = (sign_in, approvals, runs, in_doubt, channels, tools, health, event_streams)
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
    text = {404: "page not found", 405: "method not allowed"}.get(status, str(exc))
    headers = getattr(exc, "headers", None)
    return _problem(request, Problem(status, "http", text), headers)


async def _store_problem(request: Request, exc: Exception) -> Response:
    """422 for a value that no store can look for, such as a NUL byte in an id; else 503."""
    theirs = "cannot be looked for" in str(exc)
    problem = Problem(422 if theirs else 503, "store-error", str(exc))
    return _problem(request, problem)


def _problem(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    if request.url.path.startswith("/api/"):
        response: Response = api.problem_response(problem)
    else:
        response = console_of(request).render_problem(request, problem)
    response.headers.update(headers or {})
    return response
