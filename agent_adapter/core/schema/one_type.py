"""A schema with several types as a union of schemas with one type each."""

from __future__ import annotations

from typing import Any

from agent_adapter.core.schema.keywords import ANNOTATIONS, IN_PLACE

Schema = dict[str, Any]

_OF_TYPE: dict[str, str] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "contentEncoding"), "string"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("contains", "minContains", "maxContains", "unevaluatedItems"), "array"),
    **dict.fromkeys(("properties", "required", "additionalProperties"), "object"),
    **dict.fromkeys(("patternProperties", "propertyNames", "dependentRequired"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "unevaluatedProperties"), "object"),
}
"""Keywords that apply to values of one type only."""


def one_type(node: Schema) -> Schema:
    """`node` with a list of types, or `nullable`, as a union of schemas of one type each."""
    kinds = node.get("type")
    nullable = node.pop("nullable", None) is True
    if isinstance(kinds, list):
        listed = [*kinds, *(["null"] if nullable and "null" not in kinds else [])]
    elif nullable and isinstance(kinds, str) and kinds != "null":
        listed = [kinds, "null"]
    else:
        return _nullable(node) if nullable and "type" not in node else node
    outer = {key: value for key, value in node.items() if key in ANNOTATIONS}
    inner = {key: value for key, value in node.items() if key not in ANNOTATIONS | {"type"}}
    union = {"anyOf": [_of_type(inner, kind) for kind in listed]}
    union["anyOf"] = [part for part in union["anyOf"] if part is not None]
    if len(union["anyOf"]) == 1:
        return {**union["anyOf"][0], **outer}
    return {**union, **outer}


def _of_type(node: Schema, kind: Any) -> Any:
    """The part of `node` for values of one type; `None` if no such value fits."""
    part = {
        key: value
        for key, value in node.items()
        if _OF_TYPE.get(key, kind) == kind and not (kind == "null" and key == "format")
    }
    if "enum" in part:
        part["enum"] = [value for value in part["enum"] if _is_of(value, kind)]
        if not part["enum"]:
            return None if kind != "null" else {"type": "null"}
    if kind == "null":
        return {"type": "null", **{k: v for k, v in part.items() if k in IN_PLACE | {"const"}}}
    return {"type": kind, **part}


def _nullable(node: Schema) -> Schema:
    outer = {key: value for key, value in node.items() if key in ANNOTATIONS}
    inner = {key: value for key, value in node.items() if key not in ANNOTATIONS}
    if not inner or None in inner.get("enum", ()):
        return node
    return {"anyOf": [inner, {"type": "null"}], **outer}


def _is_of(value: Any, kind: Any) -> bool:
    kinds: dict[str, Any] = {
        "string": str, "array": list, "object": dict, "boolean": bool, "null": type(None),
    }  # fmt: skip
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (whole or kind == "number")
    return isinstance(value, kinds.get(str(kind), object))
