"""Answers of the API compared with the OpenAPI document."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from agent_adapter.console.api.openapi import openapi_document
from agent_adapter.console.api.operations import OPERATIONS

DOCUMENT = openapi_document(OPERATIONS)


def undescribed(method: str, path: str, answer: Any) -> list[str]:
    """What in `answer` differs from the document, fields that it does not name included."""
    described = DOCUMENT["paths"][path][method.lower()]["responses"]["200"]
    schema = described["content"]["application/json"]["schema"]
    whole = {**schema, "components": _closed(DOCUMENT["components"])}
    return [
        f"{each.json_path}: {each.message}"
        for each in Draft202012Validator(whole).iter_errors(answer)
    ]


def _closed(schema: Any) -> Any:
    """The schema without room for fields that it does not name."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed
