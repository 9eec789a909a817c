"""The providers' published limits for tools, and the rewrites that enforce them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.schema.dialects import Dialect, Limits, Schema, renamed
from agent_adapter.core.schema.keywords import mapped
from agent_adapter.core.schema.references import refers_to_itself, target_of

_MOST_DISSOLVED = 200
"""The most references that are replaced by their targets: each may hold more references."""

_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "enum", "const", "not", "if", "then", "else")


def _plain_object(schema: Schema, limits: Limits) -> Schema:
    """An object with `properties`; a union at the top has its names there and is dropped."""
    plain = {key: value for key, value in schema.items() if key not in _AT_THE_TOP}
    plain.setdefault("type", "object")
    plain.setdefault("properties", {})
    return plain


def _with_items(schema: Schema, limits: Limits) -> Schema:
    """`items` in every array: the API requires it."""

    def change(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        node = mapped(node, change)
        if node.get("type") == "array" and "items" not in node:
            node["items"] = {}
        return node

    result: Schema = change(schema)
    return result


def _without_empty_choices(schema: Schema, limits: Limits) -> Schema:
    """No empty text in an enum; the description mentions it instead."""

    def change(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        node = mapped(node, change)
        if "" in node.get("enum", ()):
            node["enum"] = [value for value in node["enum"] if value != ""]
            if not node["enum"]:
                del node["enum"]
            _say(node, 'May be an empty text ("").')
        return node

    result: Schema = change(schema)
    return result


def _gemini(schema: Schema, limits: Limits) -> Schema:
    """Constants as enums, plain references, defaults in descriptions, known keywords only."""
    known = limits.keywords or frozenset()
    left = _MOST_DISSOLVED

    def change(node: Any) -> Any:
        nonlocal left
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str) and len(node) > 1:
            left -= 1
            node = _dissolved(node, schema) if left > 0 else {"$ref": node["$ref"]}
        if "$ref" in node:
            return {"$ref": node["$ref"]}
        node = _with_properties(node, schema)
        result = {key: value for key, value in mapped(node, change).items() if key in known}
        if "const" in node:
            result["enum"] = [node["const"]]
        if node.get("default") is not None:
            _say(result, f"Default: {json.dumps(node['default'], ensure_ascii=False)}.")
        names = [name for name in node.get("required", ()) if name in result.get("properties", ())]
        result.pop("required", None)
        return {**result, "required": names} if names else result  # the API takes no other names

    result: Schema = change(schema)
    return result


def _dissolved(node: Schema, root: Mapping[str, Any]) -> Schema:
    """`node` without siblings beside a reference, which the API refuses."""
    reference = node.get("$ref")
    siblings = {key: value for key, value in node.items() if not key.startswith("$")}
    if not isinstance(reference, str) or not siblings:
        return node
    if refers_to_itself(reference, root):
        return {key: value for key, value in node.items() if key.startswith("$")}
    target = target_of(reference, root)
    if "properties" in target and "properties" in siblings:
        siblings["properties"] = {**target["properties"], **siblings["properties"]}
    return _dissolved({**target, **siblings}, root)


def _with_properties(node: Schema, root: Mapping[str, Any]) -> Schema:
    """`node` with the properties of its `allOf`, a keyword that the API does not read."""
    for part in node.get("allOf", ()):
        whole = part
        while isinstance(whole.get("$ref"), str) and not refers_to_itself(whole["$ref"], root):
            whole = {**target_of(whole["$ref"], root), **_beside(whole)}
        whole = _with_properties(whole, root)
        if "properties" in whole:
            required = [*node.get("required", ()), *whole.get("required", ())]
            properties = {**whole["properties"], **node.get("properties", {})}
            node = {**node, "properties": properties, "required": list(dict.fromkeys(required))}
    return node


def _beside(node: Schema) -> Schema:
    return {key: value for key, value in node.items() if key != "$ref"}


def _say(node: Schema, sentence: str) -> None:
    text = node.get("description")
    node["description"] = f"{text} {sentence}" if text else sentence


# platform.openai.com/docs/api-reference/chat/create: `tools[].function`. The API refuses an array
# without `items`, an argument object without `properties`, and unions at the top.
openai = Dialect(
    name="openai",
    limits=Limits(tool_name=r"[a-zA-Z0-9_-]{1,64}", description=1024, needs_items=True),
    rewrites=(_plain_object, _with_items),
)

# docs.claude.com/en/api/messages: `tools[].input_schema`. The API refuses unions at the top.
anthropic = Dialect(
    name="anthropic",
    limits=Limits(tool_name=r"[a-zA-Z0-9_-]{1,64}", parameter_name=r"[a-zA-Z0-9_.-]{1,64}"),
    rewrites=(_plain_object, renamed),
)

# google-genai's own documentation of `FunctionDeclaration` and of its JSON Schema fields.
gemini = Dialect(
    name="gemini",
    limits=Limits(
        tool_name=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
        parameter_name=r"[a-zA-Z_][a-zA-Z0-9_]{0,63}",
        needs_items=True,
        empty_enum_text=False,
        text_beside_reference=False,
        keywords=frozenset(
            {
                "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description",
                "enum", "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum",
                "anyOf", "oneOf", "properties", "additionalProperties", "required",
                "propertyOrdering",
            }
        ),
    ),
    rewrites=(_plain_object, renamed, _gemini, _with_items, _without_empty_choices),
)  # fmt: skip

DIALECTS: dict[str, Dialect] = {each.name: each for each in (openai, anthropic, gemini)}
"""The providers' dialects by name; OpenAI's strict subset is `openai_strict`."""
