"""Whether a schema in the normal form is valid, keyword by keyword.

The meta-schema says the same in about a millisecond for each subschema: seconds for a large one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent_adapter.core.schema.keywords import LISTS, MAPS, SINGLE

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def problem_of(schema: Any) -> str | None:
    """The first problem of a schema, with its place; `None` for a valid one."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        where, node = waiting.pop()
        if isinstance(node, bool):
            continue
        if not isinstance(node, (dict, Mapping)):
            return f"{where or 'its root'}: {node!r:.80} is no schema"
        for keyword, value in node.items():
            here = f"{where}.{keyword}" if where else keyword
            kind, what = _VALUES.get(keyword, _ANYTHING)
            if not kind(value):
                return f"{here}: {value!r:.80} is not valid; it is {what}"
            waiting += [(here + name, part) for name, part in _parts(keyword, value)]
    return None


def _parts(keyword: str, value: Any) -> Iterator[tuple[str, Any]]:
    if keyword in SINGLE:
        yield "", value
    elif keyword in MAPS:
        yield from ((f".{name}", part) for name, part in value.items())
    elif keyword in LISTS:
        yield from ((f".{place}", part) for place, part in enumerate(value))


def _is_anything(value: Any) -> bool:
    return True


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_filled(value: Any) -> bool:
    return _is_list(value) and bool(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_above_zero(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_names(value: Any) -> bool:
    return _is_list(value) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and _is_names(names) and _TYPES.issuperset(names)


def _is_dependencies(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_names, value.values()))


_Expected = tuple[Callable[[Any], bool], str]
_ANYTHING: _Expected = (_is_anything, "anything")
_VALUES: dict[str, _Expected] = {
    **dict.fromkeys(MAPS, (_is_map, "an object")),
    **dict.fromkeys(LISTS, (_is_filled, "a list of schemas")),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_number, "a number")
    ),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
         "minContains", "maxContains"),
        (_is_count, "a whole number from 0"),
    ),
    **dict.fromkeys(
        ("title", "description", "pattern", "format", "$ref", "$id", "$schema", "$anchor",
         "$dynamicRef", "$dynamicAnchor", "$comment", "contentEncoding", "contentMediaType"),
        (_is_text, "text"),
    ),
    **dict.fromkeys(
        ("uniqueItems", "deprecated", "readOnly", "writeOnly"), (_is_flag, "true or false")
    ),
    **dict.fromkeys(("enum", "examples"), (_is_list, "a list")),
    "required": (_is_names, "a list of different names"),
    "dependentRequired": (_is_dependencies, "an object of lists of different names"),
    "multipleOf": (_is_above_zero, "a number above 0"),
    "type": (_is_type, "the name of a type, or a list of different ones"),
}  # fmt: skip
