"""Serving pages: templates whose every value is shown inert, and handlers that know the person."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agent_adapter.console.authentication import Authenticator, Person
from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import Settings
from agent_adapter.core.errors import AgentAdapterError, NotFoundError
from agent_adapter.exec.approval.request import visible

__all__ = ["Console", "Form", "action", "local_path", "page", "see_other"]

Form = dict[str, str]

_FOLDER = Path(__file__).parent
_PREVIEW = 2_000
_MOST_FIELDS = 1_000


class Console:
    """What the handlers of one application share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = settings.store
        self.authenticator = Authenticator(settings)
        self._templates = _environment()

    def render(
        self, request: Request, template: str, *, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A page, or a part of one, as an answer."""
        person: Person | None = getattr(request.state, "person", None)
        shared = {
            "request": request,
            "person": person,
            "csrf": person.session.csrf if person is not None and person.session else "",
            "path": request.url.path,
        }
        text = self._templates.get_template(template).render(shared | values)
        # A lone surrogate cannot be sent; it was made visible wherever it is text.
        return HTMLResponse(text.encode("utf-8", "replace").decode(), status_code=status)

    def refuse(self, request: Request, problem: Problem) -> HTMLResponse:
        """The page, or the line for a part of a page, that says what is wrong."""
        return self.render(request, "problem.html", status=problem.status, problem=problem)


def console_of(request: Request) -> Console:
    """The console that serves this request."""
    console: Console = request.app.state.console
    return console


PageHandler = Callable[[Console, Request, Person], Awaitable[Response]]
ActionHandler = Callable[[Console, Request, Person, Form], Awaitable[Response]]


def page(path: str, handler: PageHandler, *, role: str = "viewer") -> Route:
    """A route for people who are signed in; others are asked to sign in first."""

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        try:
            person = await console.authenticator.who(request)
            secret = None
            if person is None:
                vouched = await console.authenticator.vouched(request)
                if vouched is None:
                    return _ask_to_sign_in(request)
                person, secret = vouched
            request.state.person = person
            person.check(role)
            response = await handler(console, request, person)
            if secret is not None:
                console.authenticator.remember(response, request, secret)
            return response
        except Problem as problem:
            return console.refuse(request, problem)
        except NotFoundError as exc:
            return console.refuse(request, Problem(404, exc.kind, str(exc)))

    return Route(path, endpoint, methods=["GET"], name=path)


def action(path: str, handler: ActionHandler, *, role: str = "approver") -> Route:
    """A route for forms: of this console's own pages, of the person's own session."""

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        try:
            person = await console.authenticator.who(request)
            if person is None:
                raise Problem(401, "auth-error", "sign in first; nothing was changed")
            request.state.person = person
            console.authenticator.check_origin(request)
            form = await form_of(request)
            console.authenticator.check_post(request, person, form.get("csrf", ""))
            person.check(role)
            return await handler(console, request, person, form)
        except Problem as problem:
            return console.refuse(request, problem)
        except AgentAdapterError as exc:
            return console.refuse(request, Problem(422, exc.kind, str(exc)))

    return Route(path, endpoint, methods=["POST"], name=f"POST {path}")


async def form_of(request: Request) -> Form:
    """The text fields of a form; of several with one name the last."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem(415, "form", "send a form (application/x-www-form-urlencoded)")
    try:
        form = await request.form(max_fields=_MOST_FIELDS)
        request.state.several = form.getlist("record")
        return {name: value for name, value in form.items() if isinstance(value, str)}
    except Exception as exc:
        raise Problem(400, "form", "the form cannot be read") from exc


def see_other(path: str) -> RedirectResponse:
    """After a form, a page to look at."""
    return RedirectResponse(path, status_code=303)


def local_path(text: str) -> str:
    """A path of this site to go on to; `/` for anything else."""
    ours = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if ours and text.isprintable() and "\\" not in text else "/"


def _ask_to_sign_in(request: Request) -> Response:
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={"HX-Refresh": "true"})
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return see_other(f"/sign-in?next={quote(here, safe='')}")


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a template shows is made visible before it is escaped.
        finalize=_shown,
    )
    made.filters |= {
        "when": _when,
        "seconds": _seconds,
        "pretty": _pretty,
        "preview": _preview,
        "path": lambda text: quote(str(text), safe=""),
    }
    made.globals["PREVIEW"] = _PREVIEW
    return made


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _when(at: float | None) -> Markup | str:
    if at is None:
        return "-"
    moment = datetime.fromtimestamp(at, UTC)
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    return Markup('<time datetime="{}">{} UTC</time>').format(moment.isoformat(), text)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _pretty(value: Any) -> str:
    """JSON for reading: what is JSON text or bytes is laid out, anything else is shown as it is."""
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
