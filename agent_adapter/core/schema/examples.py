"""The smallest value that fits a schema, for dry runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_adapter.core.schema.references import target_of

_DEEPEST = 24

_PYTHON: dict[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}

_TEXTS: dict[str, str] = {
    "date-time": "2020-01-02T03:04:05Z",
    "date": "2020-01-02",
    "time": "03:04:05Z",
    "duration": "PT1S",
    "email": "ann@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "base64": "aGk=",
    "json-string": "{}",
}


def example(schema: Mapping[str, Any]) -> Any:
    """A value that fits a schema in the normal form, as far as types, sizes and choices go.

    Patterns and validators in code may still refuse it.
    """
    return _value(schema, schema, 0)


def _value(node: Any, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(node, Mapping):
        return None
    if "$ref" in node and depth < _DEEPEST:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _value({**target_of(node["$ref"], root), **beside}, root, depth + 1)
    for value in _stated(node):
        if _may_be(node, value):
            return value
    members = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if members and node.get("type") != "object":
        return _value(members[0], root, depth + 1)
    return _of_type(node, members, root, depth)


def _stated(node: Mapping[str, Any]) -> Iterator[Any]:
    """The values that a schema names, which need not fit it: foreign defaults are often texts."""
    for keyword in ("default", "const"):
        if keyword in node:
            yield node[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(node.get(keyword), list):
            yield from node[keyword]


def _may_be(node: Mapping[str, Any], value: Any) -> bool:
    """Whether `value` is of the node's type and among its choices."""
    kind = node.get("type")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in ("integer", "number"):
        fits = number and (kind == "number" or float(value).is_integer())
    else:
        fits = kind not in _PYTHON or isinstance(value, _PYTHON[kind])
    return fits and ("enum" not in node or value in node["enum"])


def _of_type(
    node: Mapping[str, Any], members: list[Any], root: Mapping[str, Any], depth: int
) -> Any:
    kind = node.get("type", "object" if "properties" in node else "string")
    if kind == "object":
        return _object(node, members, root, depth)
    if kind == "array":
        return _array(node, root, depth)
    if kind == "string":
        return _text(node)
    if kind in ("integer", "number"):
        return _number(node, kind)
    return None if kind == "null" else True


def _object(
    node: Mapping[str, Any], branches: list[Any], root: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    """The required properties, including those of the first branch of a union."""
    properties, required = dict(node.get("properties", {})), list(node.get("required", ()))
    for branch in branches[:1]:
        inner = target_of(branch["$ref"], root) if "$ref" in branch else branch
        properties |= inner.get("properties", {})
        required += inner.get("required", ())
    if depth > _DEEPEST:
        required = []
    return {name: _value(properties.get(name, {}), root, depth + 1) for name in required}


def _array(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> list[Any]:
    first = [_value(part, root, depth + 1) for part in node.get("prefixItems", ())]
    more = int(node.get("minItems", 0)) - len(first)
    return first + [
        _value(node.get("items"), root, depth + 1) for _ in range(min(max(more, 0), 99))
    ]


def _text(node: Mapping[str, Any]) -> str:
    text = _TEXTS.get(str(node.get("format")), "text")
    least, most = int(node.get("minLength", 0)), int(node.get("maxLength", 10**6))
    return text.ljust(min(least, 10_000), "x")[:most]


def _number(node: Mapping[str, Any], kind: str) -> Any:
    """The least multiple within the bounds."""
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum"))
    step = node.get("multipleOf", 1)
    value = low if low is not None else min(1, high) if high is not None else 1
    if node.get("exclusiveMinimum") == value:
        value += step if kind == "integer" or "multipleOf" in node else 0.5
    if node.get("exclusiveMaximum") == value and low is None:
        value -= step
    if "multipleOf" in node:
        value = -(-value // step) * step
    return int(-(-value // 1)) if kind == "integer" else value
