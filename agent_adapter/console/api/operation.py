"""One operation of the JSON API, and the request that its handler gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel
from starlette.requests import Request

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console
from agent_adapter.console.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request whose person is known and has the role that the operation needs."""

    console: Console
    request: Request
    person: Person

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])


class ApiOperation:
    """A method and path, its handler, and the least role that may call it.

    The handler gets the `ApiRequest` and, if it has such parameters, the validated `query` and
    `body`. The OpenAPI document takes its schemas from their types and from the type that the
    handler returns, and its summary from the handler's docstring.
    """

    def __init__(
        self,
        method: Literal["GET", "POST"],
        path: str,
        handler: Callable[..., Awaitable[Any]],
        *,
        role: str = "viewer",
    ) -> None:
        self.method = method
        self.path = path
        self.handler = handler
        self.role = role
        types = get_type_hints(handler)
        self.answer: Any = types["return"]
        self.query: type[Parameters] | None = types.get("query")
        self.body: type[BaseModel] | None = types.get("body")
