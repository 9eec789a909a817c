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
    bulk,
    channels,
    deciding,
    event_streams,
    health,
    in_doubt,
    people,
    probes,
    repairs,
    runs,
    sign_in,
    tools,
)
from agent_adapter.console.api import routes as api
from agent_adapter.console.middleware import SecurityMiddleware
from agent_adapter.console.pages import Console, console_of
from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import LOOPBACK, Settings, TrustedProxy
from agent_adapter.core.errors import AgentAdapterError, NotFoundError, StoreError
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.store.base import Store
from agent_adapter.store.releasing import MAX_SECONDS

_STATIC = Path(__file__).parent / "static"
_DECIDING = (bulk, approvals, deciding)
_PAGES = (sign_in, *_DECIDING, runs, in_doubt, channels, tools, health, people)
_SECTIONS = (probes, *_PAGES, repairs, event_streams)


def create_app(
    store: Store,
    *,
    registry: ToolRegistry | None = None,
    tenant: str | None = None,
    hosts: Collection[str] = LOOPBACK,
    trusted_proxy: TrustedProxy | None = None,
    reviewer_keys: str | os.PathLike[str] | None = None,
    https: bool | None = None,
    requests_per_minute: int = 600,
    undo_window: float = 5.0,
) -> Starlette:
    """The console over `store`, for any ASGI server; all but `/healthz`, `/readyz` need a sign-in.

    Args:
        store: the store to show.
        registry: the tools, for the schemas of forms and for the tools page.
        tenant: the only tenant whose records are shown, and whose people may sign in; `None`: each
            person sees the tenants of their own log-in.
        hosts: the host names that the console answers to.
        trusted_proxy: a proxy that authenticates people. The server must not rewrite the peer's
            address then (uvicorn: `proxy_headers=False`).
        reviewer_keys: a folder with the signing key `NAME.key` of each reviewer who signs here.
        https: whether browsers use HTTPS; `None` takes the scheme of each request.
        requests_per_minute: the limit of each session and token; a fifth of it for actions.
        undo_window: seconds, at most 60, in which a decision made in a page can be undone; nothing
            goes by it before. 0 releases it at once, as the API always does.

    Raises:
        AgentAdapterError: `reviewer_keys` is not a folder, `requests_per_minute` is below 1, or
            `undo_window` is not from 0 to 60.
    """
    keys = None if reviewer_keys is None else Path(reviewer_keys)
    _check(keys, requests_per_minute, undo_window)
    settings = Settings(
        store=store,
        registry=registry,
        only=tenant,
        hosts=frozenset(hosts),
        proxy=trusted_proxy,
        keys=keys,
        https=https,
        per_minute=requests_per_minute,
        undo_window=undo_window,
    )
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=_STATIC), name="static"),
            Mount("/api/v1", routes=api.ROUTES),
            *(route for section in _SECTIONS for route in section.ROUTES),
        ],
        middleware=[Middleware(SecurityMiddleware, hosts=settings.hosts, https=https)],
        exception_handlers=dict.fromkeys(
            (HTTPException, Problem, AgentAdapterError), _answer_error
        ),
    )
    app.state.console, app.state.readiness = Console(settings), probes.Readiness(store)
    return app


def _check(keys: Path | None, requests_per_minute: int, undo_window: float) -> None:
    """Raise `AgentAdapterError` for a setting with which no console can work."""
    if keys is not None and not keys.is_dir():
        raise AgentAdapterError(
            f"reviewer_keys: {keys} is not a folder: create it, with a NAME.key for each reviewer"
        )
    if requests_per_minute < 1:
        raise AgentAdapterError(f"requests_per_minute is {requests_per_minute}: give 1 or more")
    if not 0 <= undo_window <= MAX_SECONDS:
        raise AgentAdapterError(
            f"undo_window is {undo_window}: give 0 to {MAX_SECONDS:.0f} seconds"
        )


async def _answer_error(request: Request, exc: Exception) -> Response:
    """The error as JSON for the API, else as a page."""
    problem = _problem_of(exc)
    if request.url.path.startswith("/api/"):
        response: Response = api.problem_response(problem)
    else:
        response = console_of(request).render_problem(request, problem)
    response.headers.update(getattr(exc, "headers", None) or {})
    return response


def _problem_of(exc: Exception) -> Problem:
    if isinstance(exc, Problem):
        return exc
    if isinstance(exc, StoreError):
        # A value that no store can look for, such as a NUL byte in an id, is invalid input.
        status = 422 if "cannot be looked for" in str(exc) else 503
        return Problem(status, StoreError.kind, str(exc))
    if isinstance(exc, AgentAdapterError):
        return Problem(404 if isinstance(exc, NotFoundError) else 422, exc.kind, str(exc))
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    text = {404: "page not found", 405: "method not allowed"}.get(status, str(exc))
    return Problem(status, "http", text)
