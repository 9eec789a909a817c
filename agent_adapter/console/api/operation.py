"""One operation of the JSON API, and the request that its handler gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from starlette.requests import Request

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console
from agent_adapter.console.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request with its person, query and body already checked."""

    console: Console
    request: Request
    person: Person
    query: Any
    body: Any

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """A method and path, what it takes, what it answers, and the least role that may call it.

    `answer` is the type that `handler` returns. The OpenAPI document has its schema, and the
    handler's docstring as the summary.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[[ApiRequest], Awaitable[Any]]
    answer: Any
    role: str = "viewer"
    query: type[Parameters] = Parameters
    body: type[BaseModel] | None = None
