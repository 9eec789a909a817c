"""Where the subschemas of a JSON Schema are: names and data are never taken for keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MAPS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Keywords that map names to schemas: a property called `default` or `$ref` is a name."""

LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})

SINGLE = frozenset(
    {
        "items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else",
        "unevaluatedItems", "unevaluatedProperties", "contentSchema",
    }
)  # fmt: skip

IN_PLACE = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas describe the same value as the schema that holds them."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords that refuse no value."""


def subschemas(node: Any) -> Iterator[tuple[str, Any]]:
    """Each schema directly under `node`, with the keyword that holds it; never data or names."""
    if not isinstance(node, (dict, Mapping)):  # a test of an abstract class alone is slow
        return
    for keyword, value in node.items():
        if keyword in SINGLE:
            yield keyword, value
        elif keyword in MAPS and isinstance(value, (dict, Mapping)):
            for part in value.values():
                yield keyword, part
        elif keyword in LISTS and isinstance(value, list):
            for part in value:
                yield keyword, part


def mapped(node: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A shallow copy of `node` in which `change` has been applied to each direct subschema."""
    result: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in SINGLE:
            result[keyword] = change(value)
        elif keyword in MAPS and isinstance(value, Mapping):
            result[keyword] = {name: change(part) for name, part in value.items()}
        elif keyword in LISTS and isinstance(value, list):
            result[keyword] = [change(part) for part in value]
        else:
            result[keyword] = value
    return result


def size_of(node: Any, most: int) -> int:
    """How many schemas `node` holds, itself among them, counted to little more than `most`."""
    count, waiting = 0, [node]
    while waiting and count <= most:
        count += 1
        waiting += [part for _, part in subschemas(waiting.pop())]
    return count
