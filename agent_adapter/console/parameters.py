"""Query parameters, read by pydantic models: pages and the JSON API share them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from agent_adapter.console.problems import Problem

M = TypeVar("M", bound="Parameters")

# SQLite stores integers of 64 bits; a larger number would fail in the store.
_LARGEST = 10**15

Start = Annotated[
    float | None, Field(gt=-_LARGEST, lt=_LARGEST, description="`next` of the previous page.")
]
Count = Annotated[int, Field(ge=1, le=200, description="The maximum number of items.")]
EntryNumber = Annotated[int, Field(ge=0, lt=_LARGEST, description="The number of a log entry.")]


Text = Annotated[str | None, Field(max_length=200, description="A part of it, whatever the case.")]
Moment = Annotated[
    datetime | None, Field(description="ISO 8601; in UTC unless it says something else.")
]


def seconds_of(moment: datetime | None) -> float | None:
    """A moment as seconds since the epoch."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Parameters(BaseModel):
    """The parameters of one query; unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, str_strip_whitespace=True)


def read_query(request: Request, model: type[M]) -> M:
    """The query of `request` as `model`; `Problem` 422 names each invalid parameter.

    A parameter that is given several times has its last value. An empty one counts as absent, as
    browsers send the empty fields of a form.
    """
    given = {name: value for name, value in request.query_params.items() if value.strip()}
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        raise Problem(422, "query", invalid_fields(exc)) from exc


def invalid_fields(exc: ValidationError, whole: str = "query") -> str:
    """One clause per invalid field: its name and the reason, without the value that was sent."""
    errors: list[Any] = exc.errors(include_url=False, include_input=False, include_context=False)
    clauses = [f"{'.'.join(map(str, each['loc'])) or whole}: {each['msg']}" for each in errors]
    return "; ".join(clauses)[:2000]
