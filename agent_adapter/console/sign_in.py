"""The pages to sign in and out."""

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


async def _form(request: Request) -> Response:
    return _render(request, request.query_params.get("next", "/"))


async def _sign_in(request: Request) -> Response:
    console = console_of(request)
    form: Form = {}
    try:
        form = await form_of(request)
        console.authenticator.check_sign_in_csrf(request, form.get("csrf", ""))
        _, secret = await console.authenticator.sign_in(request, form.get("token", ""))
    except Problem as problem:
        return _render(request, form.get("next", "/"), problem)
    response = see_other(local_path(form.get("next", "/")))
    console.authenticator.set_session_cookie(response, request, secret)
    return response


async def _sign_out(console: Console, request: Request, person: Person, form: Form) -> Response:
    await console.authenticator.sign_out(person)
    response = see_other("/sign-in")
    console.authenticator.delete_session_cookie(response, request)
    return response


async def _choose_tenant(
    console: Console, request: Request, person: Person, form: Form
) -> Response:
    await console.authenticator.choose_tenant(person, form.get("tenant"))
    return see_other("/approvals")


async def _home(console: Console, request: Request, person: Person) -> Response:
    return see_other("/approvals")


def _render(request: Request, next_path: str, problem: Problem | None = None) -> Response:
    console = console_of(request)
    # The token is part of the page and its cookie part of the headers: the cookie is set on a
    # response that exists before the page, and copied.
    blank = Response()
    csrf = console.authenticator.new_sign_in_csrf(blank, request)
    response = console.render(
        request,
        "sign_in.html",
        status=200 if problem is None else problem.status,
        sign_in_csrf=csrf,
        next_path=local_path(next_path),
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
    action("/tenant", _choose_tenant, role="viewer"),
    page("/", _home),
]
