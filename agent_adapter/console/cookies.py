"""The console's cookies: not for scripts, not for requests of other sites, one set per port."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

SESSION = "agent_adapter_session"
SIGN_IN = "agent_adapter_sign_in"


def cookie_name(request: Request, name: str) -> str:
    """The name of that cookie here.

    Browsers send one host's cookies to all of its ports: with one name for all of them, consoles on
    two ports would sign each other out.
    """
    port = request.headers.get("host", "").rpartition("]")[2].partition(":")[2]
    return f"{name}_{port}" if port.isdecimal() else name


def read_cookie(request: Request, name: str) -> str | None:
    """What the browser holds under that name."""
    return request.cookies.get(cookie_name(request, name))


def set_cookie(
    response: Response, request: Request, name: str, value: str, *, seconds: int, https: bool | None
) -> None:
    """Give the browser a cookie; `https=None` takes the scheme of the request."""
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=seconds,
        httponly=True,
        # Strict would lose the session on the way from a mail or a chat. Forms are refused from
        # other sites by their origin and the CSRF token, and pages change nothing.
        samesite="lax",
        secure=https if https is not None else request.url.scheme == "https",
        path="/",
    )


def delete_cookie(response: Response, request: Request, name: str) -> None:
    """Take a cookie from the browser."""
    response.delete_cookie(cookie_name(request, name), path="/")
