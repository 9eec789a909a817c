"""Routes for pages and forms, and the templates that show every value inert."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agent_adapter.console.argument_view import summary_of, view_of
from agent_adapter.console.authentication import ConsoleAuthenticator, Person
from agent_adapter.console.count_cache import CountCache
from agent_adapter.console.feed import Feed
from agent_adapter.console.problems import Problem
from agent_adapter.console.recent import Recent
from agent_adapter.console.routing import IdRoute, in_path, path_and_query
from agent_adapter.console.settings import Settings
from agent_adapter.core.inert import short, visible
from agent_adapter.integrations.installed import IntegrationState
from agent_adapter.store.base import Transaction
from agent_adapter.store.queries import ToolUse

T = TypeVar("T")

Form = dict[str, str]

_FOLDER = Path(__file__).parent
_PREVIEW = 2_000
_USES_SECONDS = 5.0
_INSTALLED_SECONDS = 30.0
_UNCOUNTED = {"waiting": 0, "doubt": 0, "turns": 0}
_MAX_FIELDS = 1_000


class Console:
    """The settings, store, authenticator and templates of one application."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = settings.store
        self.authenticator = ConsoleAuthenticator(settings)
        self.feed = Feed(settings.store)
        self.counted = CountCache(settings.store)
        self.installed: Recent[list[IntegrationState]] = Recent(_INSTALLED_SECONDS)
        self.tool_uses: Recent[tuple[list[ToolUse], str | None]] = Recent(_USES_SECONDS)
        self._templates = _environment()

    def of(self, person: Person) -> Console:
        """This console as it is for a person: with the records of their tenant."""
        mine = copy.copy(self)
        mine.settings = replace(self.settings, tenant=person.tenant)
        return mine

    async def counts_of(self, person: Person) -> dict[str, int]:
        """What waits for the person, at most a second old."""
        return await self.counted.of(person.tenant, person.name)

    async def find(self, op: Callable[[Transaction, str], T | None], what: str) -> T:
        """What `op` finds for the person's tenant; `Problem` 404 for nothing, naming `what`."""
        tenant = self.settings.tenant
        found = await self.store.read(lambda tx: op(tx, tenant))
        if found is None:
            raise Problem(404, "not-found", f"no {short(what)}")
        return found

    def render(
        self, request: Request, template: str, *, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """Render a page, or a part of one."""
        person: Person | None = getattr(request.state, "person", None)
        shared = {
            "request": request,
            "person": person,
            "csrf": person.session.csrf if person is not None and person.session else "",
            "path": request.url.path,
            "here": path_and_query(request),
            "counts": getattr(request.state, "counts", _UNCOUNTED),
        }
        text = self._templates.get_template(template).render(shared | values)
        # UTF-8 cannot carry lone surrogates; in text they are visible escapes already.
        return HTMLResponse(text.encode("utf-8", "replace").decode(), status_code=status)

    def render_problem(self, request: Request, problem: Problem) -> HTMLResponse:
        """Render the page that explains a problem."""
        return self.render(request, "problem.html", status=problem.status, problem=problem)


def console_of(request: Request) -> Console:
    """The console that serves this request."""
    console: Console = request.app.state.console
    return console


PageHandler = Callable[[Console, Request, Person], Awaitable[Response]]
ActionHandler = Callable[[Console, Request, Person, Form], Awaitable[Response]]


def page(path: str, handler: PageHandler, *, role: str = "viewer", idle: bool = False) -> Route:
    """A route for people with a session; others are redirected to the sign-in page.

    An `idle` one is fetched by open pages, and does not keep the session alive.
    """

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        person = await console.authenticator.authenticate(request, idle=idle)
        secret = None
        if person is None:
            signed_in = await console.authenticator.sign_in_by_proxy(request)
            if signed_in is None:
                return _redirect_to_sign_in(request)
            person, secret = signed_in
        request.state.person = person
        person.check(role)
        if not idle:
            request.state.counts = await console.counts_of(person)
        response = await handler(console.of(person), request, person)
        if secret is not None:
            console.authenticator.set_session_cookie(response, request, secret)
        return response

    return IdRoute(path, endpoint, methods=["GET"], name=path)


def action(path: str, handler: ActionHandler, *, role: str = "approver") -> Route:
    """A route for forms of this console's own pages, sent with the session's CSRF token."""

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        person = await console.authenticator.authenticate(request)
        if person is None:
            raise Problem(
                401, "auth-error", "You are signed out; nothing was changed. Sign in again."
            )
        request.state.person = person
        # Before the body is read: another site's form costs nothing.
        console.authenticator.check_origin(request)
        form = await form_of(request)
        console.authenticator.check_csrf(request, person, form.get("csrf", ""))
        person.check(role)
        return await handler(console.of(person), request, person, form)

    return IdRoute(path, endpoint, methods=["POST"], name=f"POST {path}")


async def form_of(request: Request) -> Form:
    """The text fields of a form; the last one if several have the same name."""
    if content_type(request) != "application/x-www-form-urlencoded":
        raise Problem(
            415, "form", "send a form with content-type: application/x-www-form-urlencoded"
        )
    try:
        form = await request.form(max_fields=_MAX_FIELDS)
        request.state.records = form.getlist("record")
        return {name: value for name, value in form.items() if isinstance(value, str)}
    except Exception as exc:
        raise Problem(400, "form", "the form is not readable") from exc


def content_type(request: Request) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def see_other(path: str) -> RedirectResponse:
    """Redirect to a page after a form, so that a reload does not send the form again."""
    return RedirectResponse(path, status_code=303)


def local_path(text: str) -> str:
    """`text` if it is a path of this site, else `/`."""
    # Browsers read `//host` and `/\\host` as another site.
    ours = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if ours and text.isprintable() and "\\" not in text else "/"


def _redirect_to_sign_in(request: Request) -> Response:
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={"HX-Refresh": "true"})
    return see_other(f"/sign-in?next={quote(path_and_query(request), safe='')}")


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Runs before autoescape: hidden characters become visible escapes in every template.
        finalize=_shown,
    )
    filters: dict[str, Callable[..., Any]] = {
        "when": _when,
        "utc": _utc,
        "view": view_of,
        "summary": summary_of,
        "name": lambda name: short(name) if isinstance(name, str) else name,
        "seconds": _seconds,
        "pretty": _pretty,
        "preview": _preview,
        "path": in_path,
    }
    made.filters |= filters
    made.globals["PREVIEW"] = _PREVIEW
    return made


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _when(at: float | None) -> Markup | str:
    if at is None:
        return "-"
    moment, text = datetime.fromtimestamp(at, UTC), _utc(at)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment.isoformat(), text, text)


def _utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _pretty(value: Any) -> str:
    """JSON text, JSON bytes or a JSON value, indented; anything else unchanged."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def _preview(text: str) -> str:
    return text if len(text) <= _PREVIEW else text[:_PREVIEW]
