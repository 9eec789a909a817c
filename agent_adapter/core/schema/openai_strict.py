"""OpenAI's strict subset of JSON Schema.

Strict requires every object to be closed and every property to be required, so an optional
parameter becomes nullable; the check treats such a null as "not given".
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.schema.dialects import used_definitions
from agent_adapter.core.schema.keywords import subschemas
from agent_adapter.core.schema.mending import takes_null
from agent_adapter.core.schema.references import refers_to_itself, target_of

# As listed in OpenAI's guide to structured outputs; the API refuses everything else.
_KEPT = frozenset(
    {
        "type", "description", "enum", "const", "properties", "required", "additionalProperties",
        "items", "anyOf", "$ref", "$defs", "pattern", "format", "multipleOf",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
    }
)  # fmt: skip
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_LOOKAROUNDS = ("(?=", "(?!", "(?<")
_MOST_PROPERTIES = 5000
_MOST_ENUM_VALUES = 1000
_DEEPEST = 10
_MOST_SCHEMAS = 10_000
"""The most schemas after references with siblings are replaced, which may double at each step."""

_WAY_OUT = "export the tool without strict, or change the parameter"


def openai_strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` in the strict subset: closed objects, every property required, null for "not given".

    Keywords that strict does not support are dropped: the executor checks the whole schema.
    Defaults, which strict refuses, are written into the descriptions.

    Raises `ValueError` naming the place that strict cannot express: an object with free keys, a
    value of any type, a tuple, an intersection, or a schema beyond OpenAI's limits.
    """
    root = copy.deepcopy(dict(schema))
    root.setdefault("type", "object")
    root.setdefault("properties", {})
    for keyword in ("anyOf", "oneOf", "allOf", "enum", "not"):
        root.pop(keyword, None)  # the API refuses them at the top, the executor checks them
    if _expanded(root, root, {}) > _MOST_SCHEMAS:
        raise ValueError(f"strict would need more than {_MOST_SCHEMAS:,} schemas; {_WAY_OUT}")
    strict = _strict(root, root, "arguments")
    if "$defs" in root:
        definitions = root["$defs"].items()
        strict["$defs"] = {name: _strict(part, root, f"$defs.{name}") for name, part in definitions}
    strict = used_definitions(strict)
    _check_limits(strict)
    return strict


def _expanded(node: Any, root: Mapping[str, Any], sizes: dict[str, int]) -> int:
    """How many schemas `node` becomes; each reference is counted once and kept in `sizes`."""
    total = 1 + sum(
        _expanded(part, root, sizes) for keyword, part in subschemas(node) if keyword != "$defs"
    )
    reference = node.get("$ref") if isinstance(node, Mapping) else None
    if not isinstance(reference, str):
        return total
    if reference not in sizes:
        sizes[reference] = 1  # while it is counted: a reference to itself is kept
        sizes[reference] = _expanded(target_of(reference, root), root, sizes)
    return total + sizes[reference]


def _strict(node: Any, root: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ValueError(f"{where}: strict has no value of any type; {_WAY_OUT}")
    node = _flat(node, root, where)
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    result = {key: value for key, value in node.items() if key in _KEPT}
    result.pop("$defs", None)
    _tidy_text(result)
    if node.get("default") is not None:
        _describe(result, f"Default: {json.dumps(node['default'], ensure_ascii=False)}.")
    if "anyOf" in result:
        parts = enumerate(result["anyOf"])
        result["anyOf"] = [_strict(part, root, f"{where}.anyOf[{i}]") for i, part in parts]
    if _is(result, "object"):
        _close(node, result, root, where)
    if _is(result, "array"):
        _check_array(node, where)
        result["items"] = _strict(node["items"], root, f"{where}[]")
    if not result.keys() & {"type", "anyOf", "enum", "const"}:
        raise ValueError(f"{where}: strict has no value of any type; {_WAY_OUT}")
    return result


def _flat(node: dict[str, Any], root: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`node` with `oneOf` as `anyOf`, one-member intersections and refs with siblings dissolved."""
    if "oneOf" in node and "anyOf" not in node:
        node = {"anyOf": node["oneOf"], **{k: v for k, v in node.items() if k != "oneOf"}}
    if "allOf" in node:
        if len(node["allOf"]) != 1 or not isinstance(node["allOf"][0], dict):
            raise ValueError(f"{where}: strict has no intersection (allOf); {_WAY_OUT}")
        node = {**node["allOf"][0], **{k: v for k, v in node.items() if k != "allOf"}}
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return node
    if len(node) == 1 or refers_to_itself(reference, root):
        return {"$ref": reference}
    beside = {key: value for key, value in node.items() if key != "$ref"}
    target = target_of(reference, root)
    return _flat({**target, **beside}, root, where)


def _tidy_text(result: dict[str, Any]) -> None:
    if result.get("format") not in _FORMATS:
        result.pop("format", None)
    if any(mark in str(result.get("pattern", "")) for mark in _LOOKAROUNDS):
        del result["pattern"]


def _close(
    node: Mapping[str, Any], result: dict[str, Any], root: Mapping[str, Any], where: str
) -> None:
    properties = node.get("properties")
    open_to = node.get("additionalProperties")
    if properties is None or isinstance(open_to, dict) or "patternProperties" in node:
        raise ValueError(f"{where}: strict has no object with free keys; {_WAY_OUT} to a model")
    required = set(node.get("required", ()))
    result["properties"] = {
        name: _property(part, root, f"{where}.{name}", optional=name not in required)
        for name, part in properties.items()
    }
    result["required"] = list(properties)
    result["additionalProperties"] = False


def _property(part: Any, root: Mapping[str, Any], where: str, *, optional: bool) -> dict[str, Any]:
    strict = _strict(part, root, where)
    if not optional or takes_null(part, root):
        return strict
    text = strict.pop("description", None)
    widened: dict[str, Any] = {"anyOf": [strict, {"type": "null"}]}
    if text is not None:
        widened["description"] = text
    _describe(widened, "Null means: not given.")
    return widened


def _check_array(node: Mapping[str, Any], where: str) -> None:
    if "prefixItems" in node:
        raise ValueError(f"{where}: strict has no tuple; {_WAY_OUT} to a list or a model")
    if not node.get("items") or not isinstance(node["items"], dict):
        raise ValueError(f"{where}: strict has no list of anything; {_WAY_OUT} to a typed list")


def _describe(node: dict[str, Any], sentence: str) -> None:
    text = node.get("description")
    node["description"] = f"{text} {sentence}" if text else sentence


def _is(node: Mapping[str, Any], kind: str) -> bool:
    stated = node.get("type")
    return kind == stated or (isinstance(stated, list) and kind in stated)


def _check_limits(schema: Mapping[str, Any]) -> None:
    properties, values, depth = _counted(schema, 0)
    for part in schema.get("$defs", {}).values():
        more = _counted(part, 0)
        properties, values = properties + more[0], values + more[1]
    for found, most, what in (
        (properties, _MOST_PROPERTIES, "properties"),
        (values, _MOST_ENUM_VALUES, "enum values"),
        (depth, _DEEPEST, "levels of nesting"),
    ):
        if found > most:
            raise ValueError(f"strict allows {most} {what}, this schema has {found}; {_WAY_OUT}")


def _counted(node: Mapping[str, Any], depth: int) -> tuple[int, int, int]:
    """Properties, enum values and depth of one schema, without what it refers to."""
    own = depth + 1 if "properties" in node else depth
    properties, values, deepest = len(node.get("properties", {})), len(node.get("enum", ())), own
    children = [*node.get("properties", {}).values(), *node.get("anyOf", ())]
    for child in children if "items" not in node else [*children, node["items"]]:
        more = _counted(child, own)
        properties, values = properties + more[0], values + more[1]
        deepest = max(deepest, more[2])
    return properties, values, deepest
