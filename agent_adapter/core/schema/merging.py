"""Merges several schemas of one value: all of them (`allOf`), or any of them (a union)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_adapter.core.schema.keywords import ANNOTATIONS

Schema = dict[str, Any]

_LARGEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_SMALLEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_CONDITIONAL = ("if", "then", "else")


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> Schema:
    """A schema of the values that fit both; annotations of `first` win.

    What cannot be written as one keyword (two patterns, two unions) stays in `allOf`. Closed
    objects are merged as if each had the properties of all.
    """
    result = dict(first)
    rest: Schema = {}
    conditional = any(keyword in first for keyword in _CONDITIONAL)
    for keyword, value in second.items():
        if keyword not in result:
            result[keyword] = value
        elif keyword in _CONDITIONAL and conditional:
            rest |= {name: second[name] for name in _CONDITIONAL if name in second}
        elif result[keyword] != value and keyword not in ANNOTATIONS:
            combine = _COMBINE.get(keyword, _neither)
            combined = combine(result[keyword], value)
            if combined is None:
                rest[keyword] = value
            else:
                result[keyword] = combined
    if conditional:
        for keyword in _CONDITIONAL:
            if keyword in rest and keyword not in first:
                result.pop(keyword, None)
    if rest:
        result["allOf"] = [*result.get("allOf", ()), rest]
    return result


def united(parts: Iterable[Mapping[str, Any]]) -> tuple[Schema, list[str]]:
    """The properties of all `parts`, and the names that every part requires."""
    found: dict[str, list[Schema]] = {}
    required: list[str] | None = None
    for part in parts:
        for name, schema in part.get("properties", {}).items():
            found.setdefault(name, []).append(schema)
        names = [name for name in part.get("required", ()) if isinstance(name, str)]
        required = names if required is None else [name for name in required if name in names]
    return {name: either(schemas) for name, schemas in found.items()}, required or []


def either(schemas: Iterable[Schema]) -> Schema:
    """A schema of the values that fit one of `schemas`; constants become one enum."""
    distinct = list({json.dumps(each, sort_keys=True): each for each in schemas}.values())
    if len(distinct) == 1:
        return distinct[0]
    values: list[Any] = []
    for each in distinct:
        if set(each) - ANNOTATIONS - {"type", "const", "enum"} or not each.keys() & {
            "const",
            "enum",
        }:
            return {"anyOf": distinct}
        values += each.get("enum", [each["const"]] if "const" in each else [])
    listed = list({json.dumps(value): value for value in values}.values())
    kinds = {each.get("type") for each in distinct}
    kind = {"type": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}
    text = next((each["description"] for each in distinct if "description" in each), None)
    return {**kind, "enum": listed, **({"description": text} if text else {})}


def _neither(first: Any, second: Any) -> Any:
    return None


def _types(first: Any, second: Any) -> Any:
    return "integer" if {first, second} == {"integer", "number"} else None


def _schemas(first: Any, second: Any) -> Any:
    if first is False or second is False:
        return False
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return merged(first, second)
    return second if first is True else first


def _maps(first: Any, second: Any) -> Any:
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return None
    both = {name: merged(first[name], part) for name, part in second.items() if name in first}
    return {**first, **second, **both}


def _names(first: Any, second: Any) -> Any:
    return list(dict.fromkeys([*first, *second]))


def _values(first: Any, second: Any) -> Any:
    texts = {json.dumps(value, sort_keys=True) for value in second}
    return [each for each in first if json.dumps(each, sort_keys=True) in texts] or None


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "type": _types,
    "properties": _maps,
    "patternProperties": _maps,
    "dependentSchemas": _maps,
    "required": _names,
    "allOf": lambda first, second: [*first, *second],
    "enum": _values,
    "additionalProperties": _schemas,
    "items": _schemas,
    "propertyNames": _schemas,
    "uniqueItems": lambda first, second: bool(first or second),
    **dict.fromkeys(_LARGEST, max),
    **dict.fromkeys(_SMALLEST, min),
}
