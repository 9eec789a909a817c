"""What the providers' APIs take of a tool's schema, beyond the neutral form."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.schema.dialects import neutral
from agent_adapter.core.schema.references import refers_to_itself, target_of

_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "enum", "not")
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

# The list of google-genai's own documentation of its JSON Schema fields.
_GEMINI = frozenset(
    {
        "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum",
        "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf",
        "properties", "additionalProperties", "required", "propertyOrdering",
    }
)  # fmt: skip


def openai(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The neutral schema as OpenAI's non-strict functions take it.

    The API refuses an array without `items`, an argument object without `properties`, and unions
    at the top, which the executor checks.
    """
    filled: dict[str, Any] = _with_items(_plain_object(schema))
    return filled


def anthropic(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The neutral schema as Anthropic's `input_schema`.

    Unions at the top are left out, since the API refuses them; the executor checks them.
    Raises `ValueError` for a parameter whose name the API refuses.
    """
    plain = _plain_object(schema)
    for name in plain["properties"]:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"the parameter {name!r} has a name that Anthropic refuses; use 1 to 64 letters, "
                "digits, `_`, `.` and `-`"
            )
    return plain


def gemini(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The neutral schema in the subset that Gemini reads: `parameters_json_schema`.

    A constant becomes an enum of one, a reference with siblings is dissolved, and keywords that
    Gemini does not know are left out: the executor checks them. Defaults go to the descriptions.
    """
    plain = _plain_object(schema)
    result: dict[str, Any] = _gemini(plain, plain)
    result.setdefault("properties", {})
    return result


def _plain_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    plain = neutral(schema)
    plain.setdefault("type", "object")
    plain.setdefault("properties", {})
    for keyword in _AT_THE_TOP:
        plain.pop(keyword, None)
    return plain


def _with_items(node: Any, *, named: bool = False) -> Any:
    """`node` with `items` in every array; `named` says that its keys are names, not keywords."""
    if isinstance(node, list):
        return [_with_items(item) for item in node]
    if not isinstance(node, dict):
        return node
    filled = {
        key: value
        if not named and key in ("const", "default", "enum", "examples")
        else _with_items(value, named=not named and key in ("properties", "$defs", "definitions"))
        for key, value in node.items()
    }
    if not named and node.get("type") == "array" and "items" not in node:
        filled["items"] = {}
    return filled


# One branch for each keyword that Gemini lacks.
def _gemini(node: Any, root: Mapping[str, Any]) -> Any:  # noqa: C901
    if not isinstance(node, dict):
        return node
    node = _dissolved(node, root)
    result = {key: copy.deepcopy(value) for key, value in node.items() if key in _GEMINI}
    if "$ref" in result:
        return {key: value for key, value in result.items() if key.startswith("$")}
    if "const" in node:
        result["enum"] = [node["const"]]
    if node.get("default") is not None:
        default = f"Default: {json.dumps(node['default'], ensure_ascii=False)}."
        text = node.get("description")
        result["description"] = f"{text} {default}" if text else default
    for key in ("properties", "$defs"):
        if key in result:
            result[key] = {name: _gemini(part, root) for name, part in node[key].items()}
    for key in ("anyOf", "oneOf", "prefixItems"):
        if key in result:
            result[key] = [_gemini(part, root) for part in node[key]]
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = _gemini(node[key], root)
    return result


def _dissolved(node: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """`node` without an intersection of one, and without siblings beside a reference."""
    if len(node.get("allOf", ())) == 1 and isinstance(node["allOf"][0], dict):
        node = {**node["allOf"][0], **{k: v for k, v in node.items() if k != "allOf"}}
    reference = node.get("$ref")
    siblings = {key: value for key, value in node.items() if not key.startswith("$")}
    if not isinstance(reference, str) or not siblings:
        return node
    if refers_to_itself(reference, root):
        return {key: value for key, value in node.items() if key.startswith("$")}
    return _dissolved({**target_of(reference, root), **siblings}, root)
