"""The API's OpenAPI document, made from the table of its operations."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

__all__ = ["Operation", "Query", "document"]


@dataclass(frozen=True, slots=True)
class Query:
    """One parameter of a query."""

    name: str
    kind: Literal["string", "integer", "number"]
    about: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that the API does: who may, with which body, and what does it."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    handler: Callable[[Any], Awaitable[Any]]
    role: str = "viewer"
    body: type[BaseModel] | None = None
    queries: tuple[Query, ...] = field(default=())


_PROBLEMS = {
    "401": "No token, or one that does not count.",
    "403": "The token's role does not permit it.",
    "404": "There is no such thing.",
    "409": "It has changed since it was read, or was decided already.",
    "411": "The body's length is missing.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "A parameter or the body does not fit.",
    "429": "Too many requests.",
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1 for these operations."""
    import agent_adapter

    schemas: dict[str, Any] = {"Problem": _problem_schema()}
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent Adapter console", "version": agent_adapter.__version__},
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _described(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    name = re.sub(r"[^a-z]+", "_", f"{operation.method} {operation.path}".lower()).strip("_")
    described: dict[str, Any] = {
        "operationId": name,
        "summary": operation.summary,
        "description": f"Needs the role {operation.role}, or one above it.",
        "parameters": [*_in_path(operation.path), *map(_in_query, operation.queries)],
        "responses": {
            "200": _answer("Done.", {"type": "object"}),
            **{
                status: _answer(about, {"$ref": "#/components/schemas/Problem"})
                for status, about in _PROBLEMS.items()
            },
        },
    }
    if operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _body(operation.body, schemas)}},
        }
    return described


def _body(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= schema.pop("$defs", {})
    schemas[model.__name__] = schema
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _in_path(path: str) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    names = re.findall(r"{(\w+)}", path)
    return [{"name": name, "in": "path", "required": True, "schema": text} for name in names]


def _in_query(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": query.kind}
    if query.choices:
        schema["enum"] = list(query.choices)
    if query.name == "limit":
        schema |= {"minimum": 1, "maximum": 200}
    return {"name": query.name, "in": "query", "description": query.about, "schema": schema}


def _answer(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _problem_schema() -> dict[str, Any]:
    text = {"type": "string"}
    error = {
        "type": "object",
        "properties": {"kind": text, "message": text},
        "required": ["kind", "message"],
    }
    return {"type": "object", "properties": {"error": error}, "required": ["error"]}
