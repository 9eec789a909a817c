"""Signing in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import (
    Console,
    Form,
    action,
    console_of,
    form_of,
    local_path,
    page,
    see_other,
)
from agent_adapter.console.problems import Problem

__all__ = ["ROUTES"]


async def _form(request: Request) -> Response:
    return _asked(request, request.query_params.get("next", "/"))


async def _sign_in(request: Request) -> Response:
    console = console_of(request)
    form: Form = {}
    try:
        form = await form_of(request)
        console.authenticator.check_before(request, form.get("mark", ""))
        _, secret = await console.authenticator.sign_in(request, form.get("token", ""))
    except Problem as problem:
        return _asked(request, form.get("next", "/"), problem)
    response = see_other(local_path(form.get("next", "/")))
    console.authenticator.remember(response, request, secret)
    return response


async def _sign_out(console: Console, request: Request, person: Person, form: Form) -> Response:
    await console.authenticator.sign_out(person)
    response = see_other("/sign-in")
    console.authenticator.forget(response)
    return response


async def _home(console: Console, request: Request, person: Person) -> Response:
    return see_other("/approvals")


def _asked(request: Request, then: str, problem: Problem | None = None) -> Response:
    console = console_of(request)
    # The mark depends on the cookie that the answer sets, so the answer is made twice.
    blank = Response()
    mark = console.authenticator.before(blank, request)
    response = console.render(
        request,
        "sign_in.html",
        status=200 if problem is None else problem.status,
        mark=mark,
        then=local_path(then),
        problem=problem,
    )
    for name, value in blank.raw_headers:
        if name == b"set-cookie":
            response.headers.append("set-cookie", value.decode("latin-1"))
    return response


ROUTES: list[Route] = [
    Route("/sign-in", _form, methods=["GET"]),
    Route("/sign-in", _sign_in, methods=["POST"]),
    action("/sign-out", _sign_out, role="viewer"),
    page("/", _home),
]
