"""The OpenAPI document, made from the operations' parameters, bodies and answer types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter

from agent_adapter.console.api.operation import ApiOperation
from agent_adapter.console.api.responses import ErrorAnswer

_ERRORS = {
    "401": "The token is missing or invalid.",
    "403": "The token's role does not permit this.",
    "404": "Not found.",
    "409": "The record changed since it was read, or is already decided.",
    "411": "The content-length header is missing.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "A parameter or the body is invalid.",
    "429": "Too many requests.",
}


def openapi_document(operations: Sequence[ApiOperation]) -> dict[str, Any]:
    """OpenAPI 3.1 for these operations."""
    import agent_adapter

    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schemas)
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


def _operation(operation: ApiOperation, schemas: dict[str, Any]) -> dict[str, Any]:
    name = re.sub(r"[^a-z]+", "_", f"{operation.method} {operation.path}".lower()).strip("_")
    error = _reference(ErrorAnswer, schemas)
    described: dict[str, Any] = {
        "operationId": name,
        "summary": operation.handler.__doc__,
        "description": f"Needs the role {operation.role} or a higher one.",
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation)],
        "responses": {
            "200": _json("Done.", _reference(operation.answer, schemas)),
            **{status: _json(about, error) for status, about in _ERRORS.items()},
        },
    }
    if operation.body is not None:
        body = _json("", _reference(operation.body, schemas, mode="validation"))
        described["requestBody"] = {"required": True, "content": body["content"]}
    return described


def _reference(model: Any, schemas: dict[str, Any], mode: Any = "serialization") -> dict[str, Any]:
    """A reference to the model's schema, which is added to `schemas`."""
    schema = TypeAdapter(model).json_schema(mode=mode, ref_template="#/components/schemas/{model}")
    schemas |= schema.pop("$defs", {})
    schemas[model.__name__] = schema
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _path_parameters(path: str) -> Iterable[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1}
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(operation: ApiOperation) -> Iterable[dict[str, Any]]:
    if operation.query is None:
        return
    for name, schema in operation.query.model_json_schema().get("properties", {}).items():
        about = schema.pop("description", "")
        # An absent parameter is `null` in the model, but no query can say `null`.
        for present in schema.pop("anyOf", ()):
            schema |= present if present != {"type": "null"} else {}
        if schema.get("default", "") is None:
            del schema["default"]
        yield {"name": name, "in": "query", "description": about, "schema": schema}


def _json(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}
