"""Translates keywords of older drafts and of OpenAPI to 2020-12."""

from __future__ import annotations

from typing import Any

_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
_RESOURCE = frozenset(
    {
        "$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary",
        "$comment", "$defs", "definitions",
    }
)  # fmt: skip
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_OBJECTS = ("properties", "patternProperties", "dependentSchemas", "dependentRequired")
_ARRAYS = ("anyOf", "oneOf", "allOf", "prefixItems", "enum", "examples")


def is_older(schema: Any) -> bool:
    """Whether `$schema` names a draft in which keywords beside `$ref` mean nothing."""
    return any(draft in str(schema.get("$schema", "")) for draft in _DRAFTS)


def modern(node: dict[str, Any], where: str) -> dict[str, Any]:
    """One schema, without its subschemas, in the keywords of 2020-12.

    `nullable` stays, as a flag. Raises `ValueError` naming `where` for a keyword of another shape.
    """
    result = {key: value for key, value in node.items() if key not in _RESOURCE}
    if isinstance(result.get("id"), str):
        del result["id"]
    for keyword in ("$dynamicRef", "$recursiveRef"):
        reference = result.pop(keyword, None)
        if isinstance(reference, str):
            result.setdefault("$ref", reference)
    _types(result, where)
    _bounds(result)
    _items(result)
    _dependencies(result)
    if not isinstance(result.get("required", []), list):
        del result["required"]  # `required: true` of draft 3: the object that holds it reads it
    _check_shapes(result, where)
    return result


def _types(node: dict[str, Any], where: str) -> None:
    """Type names in lower case; `any` is no type."""
    kinds = node.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if kinds is not None and not all(isinstance(kind, str) for kind in listed):
        raise ValueError(f"it is invalid at {where}.type: {kinds!r:.80} is no name of a type")
    named = [
        kind.lower() if isinstance(kind, str) and kind.lower() in _TYPES else kind
        for kind in listed
    ]
    if kinds is None or "any" in named or named == []:
        node.pop("type", None)
    elif isinstance(kinds, list):
        unique = list(dict.fromkeys(named))
        node["type"] = unique[0] if len(unique) == 1 else unique
    else:
        node["type"] = named[0]


def _bounds(node: dict[str, Any]) -> None:
    """`exclusiveMinimum: true` of draft 4 is a flag of `minimum`."""
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(flag), bool) and node.pop(flag) and bound in node:
            node[flag] = node.pop(bound)


def _items(node: dict[str, Any]) -> None:
    """`items: […]` is a tuple, and `additionalItems` what follows it."""
    rest = node.pop("additionalItems", None)
    if isinstance(node.get("items"), list):
        parts = node.pop("items")
        if parts:
            node["prefixItems"] = parts
        if rest is not None:
            node["items"] = rest


def _dependencies(node: dict[str, Any]) -> None:
    """`dependencies` holds names for `dependentRequired` and schemas for `dependentSchemas`."""
    dependencies = node.pop("dependencies", None)
    if not isinstance(dependencies, dict):
        return
    for name, value in dependencies.items():
        listed = [value] if isinstance(value, str) else value
        keyword = "dependentRequired" if isinstance(listed, list) else "dependentSchemas"
        node[keyword] = {**node.get(keyword, {}), name: listed}


def _check_shapes(node: dict[str, Any], where: str) -> None:
    for keywords, kind, text in ((_OBJECTS, dict, "an object"), (_ARRAYS, list, "an array")):
        for keyword in keywords:
            if keyword == "examples" or keyword not in node:
                continue
            if not isinstance(node[keyword], kind):
                found = type(node[keyword]).__name__
                raise ValueError(f"it is invalid at {where}.{keyword}: it is {text}, not {found}")
