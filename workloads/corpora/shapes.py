"""`python -m workloads.corpora.shapes`: the shapes of the corpora, with names and texts of our own.

Each construct (a schema, its keywords, and the kinds of what is under it) is written once into a
file of the tests, so that they meet what the corpora hold without the corpora.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workloads.corpora import bfcl, servers

SHAPES = Path("tests/fixtures/schemas/shapes.json")
_CACHE = Path(".cache/corpora")
_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_MOST_VALUES = 3
_LONG = 64
# Names that a walk of a schema could take for a keyword stay as they are.
_KEYWORDS = frozenset(
    {
        "type", "properties", "items", "required", "enum", "const", "default", "examples",
        "description", "title", "format", "pattern", "definitions", "not", "schema", "$ref",
    }
)  # fmt: skip
_KNOWN = _KEYWORDS | {
    "$schema", "$defs", "additionalProperties", "patternProperties", "propertyNames", "anyOf",
    "oneOf", "allOf", "if", "then", "else", "prefixItems", "contains", "nullable", "minLength",
    "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "deprecated",
    "readOnly", "writeOnly", "dependentRequired", "unevaluatedProperties", "$id",
}  # fmt: skip


def main() -> None:
    """Write the file anew from the cached corpora."""
    argparse.ArgumentParser(prog="python -m workloads.corpora.shapes", description=__doc__)
    cache = _CACHE.resolve()
    tools = [*servers.tools(cache)[0], *bfcl.tools(bfcl.fetched(cache))]
    found: dict[str, None] = {}
    for tool in tools:
        for shape in shapes(tool.schema):
            found.setdefault(json.dumps(shape, ensure_ascii=False))
    lines = ",\n".join(sorted(found, key=lambda text: (len(text), text)))
    SHAPES.parent.mkdir(parents=True, exist_ok=True)
    SHAPES.write_text(f"[\n{lines}\n]\n")
    print(f"{len(found)} shapes of {len(tools):,} schemas: {SHAPES}")


def shapes(root: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The construct at the top of `root`, and that of each schema under it, as a parameter."""
    yield _with_targets(_shape(root, 1))
    for node in _below(root):
        if node is not root and isinstance(node, Mapping):
            properties = {"a": _shape(node, 1)}
            yield _with_targets({"type": "object", "properties": properties, "required": ["a"]})


def _with_targets(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` with what its references mean."""
    text = json.dumps(schema)
    for keyword in ("$defs", "definitions"):
        if f"#/{keyword}/part" in text:
            schema = {**schema, keyword: {"part": {"type": "string"}}}
    if "#/properties/other" in text:
        schema["properties"] = {**schema.get("properties", {}), "other": {"type": "string"}}
    return schema


def _below(node: Any) -> Iterator[Any]:
    yield node
    if not isinstance(node, Mapping):
        return
    for keyword, value in node.items():
        for part in _parts(keyword, value):
            yield from _below(part)


def _parts(keyword: str, value: Any) -> list[Any]:
    if keyword in _NAMES and isinstance(value, Mapping):
        return list(value.values())
    if keyword in ("anyOf", "oneOf", "allOf", "prefixItems", "items") and isinstance(value, list):
        return value
    single = ("items", "additionalProperties", "not", "if", "then", "else", "propertyNames")
    return [value] if keyword in single else []


def _shape(node: Any, depth: int) -> Any:
    if not isinstance(node, Mapping):
        return node
    if depth == 0:
        return {"type": node["type"]} if isinstance(node.get("type"), (str, list)) else {}
    names = _names(node.get("properties", {}), depth)
    result: dict[str, Any] = {}
    for keyword, value in sorted(node.items(), key=lambda pair: str(pair[0])):
        if keyword == "required" and isinstance(value, list):
            result[keyword] = [names[name] for name in value if name in names]
        elif keyword == "properties" and isinstance(value, Mapping):
            result[keyword] = {other: _shape(value[name], 0) for name, other in names.items()}
        elif keyword in _WRITTEN:
            result[keyword] = _WRITTEN[keyword](value)
        elif keyword not in _KNOWN:
            result["x-note"] = True
        elif keyword not in ("$defs", "definitions"):
            result[keyword] = _with_parts(keyword, value, depth)
    return result


def _with_parts(keyword: str, value: Any, depth: int) -> Any:
    """The value of a keyword that may hold schemas."""
    parts = _parts(keyword, value)
    if not parts:
        return value
    made = [_shape(part, depth - 1) for part in parts]
    if isinstance(value, list):
        unique = {json.dumps(part, sort_keys=True): part for part in made}
        return list(unique.values())[:_MOST_VALUES]
    return {"^a": made[0]} if keyword in _NAMES else made[0]


def _reference(reference: Any) -> str:
    if reference == "#":
        return "#"
    for keyword in ("$defs", "definitions"):
        if str(reference).startswith(f"#/{keyword}/"):
            return f"#/{keyword}/part"
    return "#/properties/other"


def _names(properties: Any, depth: int) -> dict[str, str]:
    """A name of our own for each property of another kind; what is hard about a name stays."""
    if not isinstance(properties, Mapping):
        return {}
    kinds: dict[str, str] = {}
    for name, part in properties.items():
        kind = json.dumps(_shape(part, depth - 1), sort_keys=True) + _name("", name)
        kinds.setdefault(kind, name)
    chosen = [name for _, name in sorted(kinds.items())][:_MOST_VALUES]
    return {name: _name(chr(ord("a") + place), name) for place, name in enumerate(chosen)}


def _name(letter: str, name: str) -> str:
    """`letter` with the characters of `name` that a provider may refuse."""
    if name in _KEYWORDS:
        return name
    marks = "".join(sorted({char for char in name if not re.match(r"[a-zA-Z0-9_]", char)}))
    marks = re.sub(r"[^\x00-\x7f]+", "ñ", marks)
    first = "1" if name[:1].isdigit() else ""
    return first + marks + letter + ("x" * _LONG if len(name) > _LONG else "")


def _values(values: list[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for place, value in enumerate(values[:50]):
        kind = f"{type(value).__name__}{value == ''}{place % 2}"
        found.setdefault(kind, _value(value, place % 2))
    return list(found.values())[:_MOST_VALUES]


def _value(value: Any, place: int = 0) -> Any:
    if isinstance(value, str):
        return value and "ab"[place]
    if isinstance(value, Mapping):
        return {}
    if isinstance(value, list):
        return []
    return value


def _pattern(pattern: str) -> str:
    """A pattern of our own with the same means."""
    if "(?=" in pattern or "(?!" in pattern:
        return "^(?!x)[a-z]+"
    if re.search(r"\\[pP]\{", pattern):
        return r"^\p{L}"
    return r"^\w" if "\\" in pattern else "^[a-z]"


_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "$ref": _reference,
    "$id": lambda _: "urn:example:schema",
    "title": lambda _: "A text.",
    "description": lambda _: "A text.",
    "default": _value,
    "const": _value,
    "enum": lambda values: _values(values) if isinstance(values, list) else values,
    "examples": lambda values: _values(values) if isinstance(values, list) else [],
    "pattern": lambda pattern: _pattern(str(pattern)),
}
"""Keywords whose values hold names and texts of others."""


if __name__ == "__main__":
    main()
