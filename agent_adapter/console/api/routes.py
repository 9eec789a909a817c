"""The routes of the JSON API.

Programs send a token (`Authorization: Bearer aat_…`). Session cookies are ignored: a page of
another site could send those without the person's intent.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_adapter.console.api.openapi import openapi_document
from agent_adapter.console.api.operation import ApiOperation, ApiRequest
from agent_adapter.console.api.operations import OPERATIONS
from agent_adapter.console.pages import console_of, content_type
from agent_adapter.console.parameters import invalid_fields, read_query
from agent_adapter.console.problems import Problem
from agent_adapter.console.routing import IdRoute


def problem_response(problem: Problem) -> JSONResponse:
    """A problem as JSON: `{"error": {"kind", "message"}}`."""
    headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else None
    error = {"error": {"kind": problem.kind, "message": problem.message}}
    return JSONResponse(error, status_code=problem.status, headers=headers)


def _route(operation: ApiOperation) -> Route:
    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        person = await console.authenticator.authenticate_bearer(request)
        person.check(operation.role)
        given: dict[str, Any] = {}
        if operation.query is not None:
            given["query"] = read_query(request, operation.query)
        if operation.body is not None:
            given["body"] = await _read_body(request, operation.body)
        asked = ApiRequest(console=console.of(person), request=request, person=person)
        answer = await operation.handler(asked, **given)
        data = to_json(_json_value(answer), inf_nan_mode="null", bytes_mode="base64")
        return Response(data, media_type="application/json")

    return IdRoute(operation.path, endpoint, methods=[operation.method])


async def _read_body(request: Request, model: type[BaseModel]) -> BaseModel:
    # A form of another site is sent without a preflight request; JSON is not.
    if content_type(request) != "application/json":
        raise Problem(415, "body", "send JSON with the header content-type: application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as exc:
        raise Problem(422, "body", invalid_fields(exc, "body")) from exc


def _json_value(value: Any) -> Any:
    """`value` as JSON values; replaces lone surrogates which UTF-8 cannot carry."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_json_value(str(key)): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if is_dataclass(value) or isinstance(value, BaseModel):
        return _json_value(_fields(value))
    return value


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    return {each.name: getattr(value, each.name) for each in fields(value)}


@lru_cache(maxsize=1)
def _document() -> bytes:
    return to_json(openapi_document(OPERATIONS))


async def _openapi(request: Request) -> Response:
    return Response(_document(), media_type="application/json")


ROUTES: list[Route] = [
    Route("/openapi.json", _openapi, methods=["GET"]),
    *(_route(operation) for operation in OPERATIONS),
]
