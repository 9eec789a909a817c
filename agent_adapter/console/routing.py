"""Routes whose parameters are ids: any text can stand in a path, `/` and `..` among it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Scope

# No decoded path holds a lone surrogate, so this stands for nothing but a slash inside of an id.
_SLASH = "\udc2f"
_DOTS = (".", "..")


class IdRoute(Route):
    """A route that tells `%2F`, a slash inside of an id, from one that divides the path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As Starlette's; the parameters are whole ids."""
        match, child = super().matches(_with_marked_slashes(scope))
        if match is not Match.NONE:
            given: dict[str, Any] = child.get("path_params", {})
            child["path_params"] = {name: _id_of(value) for name, value in given.items()}
        return match, child


def in_path(id: object) -> str:
    """An id as one segment of a path.

    Browsers resolve `.` and `..` even where they are percent-encoded, so these get a `~` in front,
    and so does what begins with one.
    """
    text = str(id)
    marked = "~" + text if text in _DOTS or text.startswith("~") else text
    return quote(marked, safe="", errors="replace")


def path_and_query(request: Request) -> str:
    """What the browser asked for, still encoded: a link to the same page."""
    raw: bytes | None = request.scope.get("raw_path")
    path = quote(request.url.path) if raw is None else raw.decode("ascii", "replace")
    return f"{path}?{request.url.query}" if request.url.query else path


def _with_marked_slashes(scope: Scope) -> Scope:
    raw: bytes = scope.get("raw_path") or b""
    if scope["type"] != "http" or b"%" not in raw:
        return scope
    segments = (unquote(each) for each in raw.decode("ascii", "replace").split("/"))
    return {**scope, "path": "/".join(each.replace("/", _SLASH) for each in segments)}


def _id_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.replace(_SLASH, "/")
    return text[1:] if text.startswith("~~") or (text[1:] in _DOTS and text[0] == "~") else text
