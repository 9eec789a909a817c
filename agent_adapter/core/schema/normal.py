"""Converts any JSON Schema to one normal form, the only form that other code reads.

The normal form is 2020-12 without `$schema` and `$id`. Each reference is `#` or `#/$defs/<name>`.
Schemas are objects, `type` is one name, a union is `anyOf` or `oneOf`, `allOf` holds only what
cannot be merged. The root is an object whose `properties` are those of all its branches.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pydantic_core import from_json, to_json

from agent_adapter.core.schema.keywords import (
    ANNOTATIONS,
    IN_PLACE,
    SINGLE,
    size_of,
    subschemas,
)
from agent_adapter.core.schema.merging import merged, united
from agent_adapter.core.schema.older_drafts import is_older, modern
from agent_adapter.core.schema.one_type import one_type
from agent_adapter.core.schema.references import References, base_of, target_of

Schema = dict[str, Any]

MAX_DEPTH = 64
"""The most levels of nested schemas."""

MAX_NODES = 2_500
"""The most schemas in one tool's schema, counted while references are merged."""

MAX_BYTES = 1_000_000
"""The most bytes of a schema as JSON."""

_DATA = frozenset({"const", "default", "enum", "examples", "example", "discriminator", "required"})


def normal(schema: Any) -> Schema:
    """`schema`, of draft 4 or later, in the normal form; a deep copy.

    Raises `ValueError` for a value that is not a schema, a root that is not an object, a reference
    without a target or out of the schema, endless recursion, or a schema above the limits.
    """
    if not isinstance(schema, Mapping):
        raise ValueError(f"it is an object, not {type(schema).__name__}")
    try:
        root = _Normaliser(_json_copy(schema)).root()
        _check_endless(root)
    except (TypeError, AttributeError, KeyError, RecursionError) as exc:
        raise ValueError("it is invalid: a keyword has a value of another shape") from exc
    return root


def _json_copy(schema: Mapping[str, Any]) -> Schema:
    try:
        data = to_json(dict(schema))
    except Exception as exc:
        raise ValueError(f"it holds something that is not JSON ({exc})") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has {len(data):,} bytes, and {MAX_BYTES:,} are the most")
    try:
        copied: Schema = from_json(data, allow_inf_nan=False)
    except ValueError:
        raise ValueError(
            f"it nests more than {MAX_DEPTH} schemas, or holds NaN or infinity"
        ) from None
    return copied


class _Normaliser:
    """Converts one schema; `_names` are the definitions by the identity of their source."""

    def __init__(self, source: Schema) -> None:
        self._source = source
        self._references = References(source)
        self._older = is_older(source)
        self._names: dict[int, str] = {}
        self._definitions: dict[str, Schema] = {}
        self._waiting: list[tuple[str, Any, str]] = []
        self._under_way: set[str] = set()
        self._left = MAX_NODES

    def root(self) -> Schema:
        node = self._schema(self._source, self._references.base, "", 0)
        node = self._object(self._entered(node))
        while self._waiting:
            name, source, base = self._waiting.pop()
            self._define(name, source, base)
        node.pop("title", None)
        used = self._used(node)
        if used:
            node["$defs"] = {name: self._definitions[name] for name in used}
        return node

    def _schema(self, node: Any, base: str, where: str, depth: int) -> Schema:
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, dict):
            raise ValueError(f"it is invalid at {where or 'its root'}: {node!r:.80} is no schema")
        self._spend(depth)
        base = base_of(node, base)
        result = modern(node, where or "its root")
        wants = [name for name, part in result.get("properties", {}).items() if _is_wanted(part)]
        reference = result.pop("$ref", None)
        if isinstance(reference, str) and self._older:
            result = {key: value for key, value in result.items() if key in ANNOTATIONS}
        self._rewrite_discriminator(result, base)
        result = {key: value for key, value in result.items() if not _leads_astray(key, value)}
        result = {
            keyword: self._part(keyword, value, base, f"{where}.{keyword}".lstrip("."), depth)
            for keyword, value in result.items()
        }
        if wants:
            result["required"] = list(dict.fromkeys([*result.get("required", ()), *wants]))
        if isinstance(reference, str):
            result = {"$ref": self._reference(reference, base), **result}
        return self._plain(result)

    def _part(self, keyword: str, value: Any, base: str, where: str, depth: int) -> Any:
        def one(part: Any, name: str = "") -> Schema:
            return self._schema(part, base, where + name, depth + 1)

        if keyword in ("properties", "patternProperties", "dependentSchemas"):
            return {name: one(part, f".{name}") for name, part in value.items()}
        if keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            return [one(part, f"[{place}]") for place, part in enumerate(value)]
        if isinstance(value, bool) and keyword != "not":
            return value  # `additionalProperties: false` and similar forms are kept
        return one(value) if keyword in SINGLE else value

    def _plain(self, node: Schema) -> Schema:
        """`node` with its intersections merged, its types apart and its names known."""
        parts = node.pop("allOf", ())
        rest: list[Schema] = []
        for part in parts:
            part = self._entered(part)
            if "$ref" in part:
                rest.append(part)  # recursive: it cannot be written out
            else:
                node = merged(node, part)
        rest += node.pop("allOf", ())
        if len(rest) == 1 and rest[0].keys() == {"$ref"} and "$ref" not in node:
            node = {**rest.pop(), **node}
        if rest:
            node["allOf"] = rest
        _known_names(node)
        return one_type(node)

    def _entered(self, node: Schema) -> Schema:
        """`node` with its reference replaced by its target, unless that is being converted."""
        for _ in range(MAX_DEPTH):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            name = reference.removeprefix("#/$defs/")
            if reference == "#" or name in self._under_way:
                return node
            target = self._definition(name)
            self._spend(0, size_of(target, MAX_NODES))  # it is written out here once more
            node = merged({key: value for key, value in node.items() if key != "$ref"}, target)
        return node

    def _reference(self, reference: str, base: str) -> str:
        target, its_base = self._references.target(reference, base)
        if target is self._source:
            return "#"
        if not isinstance(target, (dict, bool)):
            raise ValueError(f"it refers to {reference!r}, which is no schema")
        # `true` is the same object everywhere, so its identity says nothing.
        key = id(target) if isinstance(target, dict) else -1 - int(target)
        if key not in self._names:
            name = self._names[key] = self._name_for(reference)
            self._waiting.append((name, target, its_base))
        return f"#/$defs/{self._names[key]}"

    def _name_for(self, reference: str) -> str:
        last = unquote(reference).rpartition("#")[2].rpartition("/")[2]
        name = re.sub(r"[^a-zA-Z0-9_.-]", "_", last.replace("~1", "_").replace("~0", "_"))[:64]
        name = name or "schema"
        if name in self._names.values():
            name = f"{name[:55]}_{hashlib.sha256(reference.encode()).hexdigest()[:8]}"
        while name in self._names.values():
            name += "_"
        return name

    def _definition(self, name: str) -> Schema:
        if name not in self._definitions:
            for place, (waiting, source, base) in enumerate(self._waiting):
                if waiting == name:
                    del self._waiting[place]
                    self._define(name, source, base)
                    break
        return self._definitions.get(name, {})

    def _define(self, name: str, source: Any, base: str) -> None:
        if len(self._under_way) >= MAX_DEPTH:
            raise ValueError(f"it nests more than {MAX_DEPTH} schemas")
        self._under_way.add(name)
        self._definitions[name] = self._schema(source, base, f"$defs.{name}", 0)
        self._under_way.discard(name)

    def _used(self, root: Schema) -> list[str]:
        """The definitions that are referenced; others would waste a model's context."""
        used: dict[str, None] = {}
        waiting: list[Any] = [root]
        while waiting:
            node = waiting.pop()
            name = str(node.get("$ref", "")).removeprefix("#/$defs/")
            if name in self._definitions and name not in used:
                used[name] = None
                waiting.append(self._definitions[name])
            waiting += [part for _, part in subschemas(node) if isinstance(part, dict)]
        return [name for name in self._definitions if name in used]

    def _object(self, node: Schema) -> Schema:
        """`node` as an object with the properties of all its branches."""
        kinds = {part.get("type") for part in node.get("anyOf", ())}
        if "type" not in node and "object" in kinds and kinds <= {"object", "null"}:
            (only,) = [part for part in node["anyOf"] if part["type"] == "object"][:1]
            if all(part is only or part.get("type") == "null" for part in node["anyOf"]):
                node = merged({key: part for key, part in node.items() if key != "anyOf"}, only)
        kind = node.setdefault("type", "object")
        if kind != "object":
            raise ValueError(f"it describes {kind!r}; arguments are always an 'object'")
        if "not" in node and node["not"] == {}:
            raise ValueError("it refuses everything; arguments are always an 'object'")
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                self._unite(node, keyword)
        _unite_conditions(node)
        if "required" in node:
            node.setdefault("properties", {})
        _known_names(node)
        _show_required(node)
        return node

    def _unite(self, node: Schema, keyword: str) -> None:
        branches = [self._branch(part, 0) for part in node[keyword]]
        branches = [part for part in branches if part.get("type", "object") == "object"]
        if not branches:
            raise ValueError("no branch of its root is an object; arguments are always one")
        properties, required = united(branches)
        own = node.get("properties", {})
        node["properties"] = {
            **own,
            **{name: part for name, part in properties.items() if not own.get(name)},
        }
        if required:
            node["required"] = list(dict.fromkeys([*node.get("required", ()), *required]))
        if all(part.get("additionalProperties") is False for part in branches):
            node.setdefault("additionalProperties", False)
        _describe(node, _alternatives(branches, keyword))

    def _branch(self, node: Schema, depth: int) -> Schema:
        """One alternative of the root, merged with its own alternatives."""
        node = dict(self._entered(node))
        for keyword in ("anyOf", "oneOf"):
            if keyword in node and depth < MAX_DEPTH:
                inner = [self._branch(part, depth + 1) for part in node[keyword]]
                properties, required = united(inner)
                node["properties"] = {**properties, **node.get("properties", {})}
                node["required"] = [*node.get("required", ()), *required]
        return node

    def _rewrite_discriminator(self, node: Schema, base: str) -> None:
        """OpenAPI's `discriminator` names references in its `mapping`, too."""
        discriminator = node.get("discriminator")
        if not isinstance(discriminator, dict) or "mapping" not in discriminator:
            return
        mapping: dict[str, str] = {}
        try:
            for value, reference in dict(discriminator["mapping"]).items():
                mapping[value] = self._reference(reference, base)
        except (ValueError, TypeError, AttributeError):
            mapping = {}
        rest = {key: value for key, value in discriminator.items() if key != "mapping"}
        node["discriminator"] = {"mapping": mapping, **rest} if mapping else rest

    def _spend(self, depth: int, nodes: int = 1) -> None:
        self._left -= nodes
        if depth > MAX_DEPTH:
            raise ValueError(f"it nests more than {MAX_DEPTH} schemas")
        if self._left < 0:
            raise ValueError(f"it has more than {MAX_NODES:,} schemas")


def _leads_astray(keyword: str, value: Any) -> bool:
    """Whether an unknown keyword holds references, which would not be rewritten."""
    if not isinstance(value, (dict, list)) or keyword in _DATA:
        return False
    if any(True for _ in subschemas({keyword: value})):
        return False
    return b'"$ref"' in to_json(value)


def _is_wanted(part: Any) -> bool:
    return isinstance(part, dict) and part.get("required") is True


def _known_names(node: Schema) -> None:
    """`required` without names that no closed object can have; open objects get the property."""
    required = node.get("required")
    if not isinstance(required, list) or not required:
        return
    names = list(dict.fromkeys(name for name in required if isinstance(name, str)))
    if "properties" in node:
        properties, closed = node["properties"], node.get("additionalProperties") is False
        if closed and "patternProperties" not in node:
            names = [name for name in names if name in properties]
        elif not node.keys() & {"$ref", "allOf"}:
            _show_required(node)
    node["required"] = names
    if not names:
        del node["required"]


def _show_required(node: Schema) -> None:
    """A property for each required name, with the rule that applies to names without one."""
    rest = node.get("additionalProperties", node.get("unevaluatedProperties"))
    rule = rest if isinstance(rest, dict) else {}
    own = node.get("properties", {})
    added = {
        name: copy.deepcopy(rule)
        for name in node.get("required", ())
        if isinstance(name, str) and name not in own
    }
    if added:
        node["properties"] = {**own, **added}


def _unite_conditions(node: Schema) -> None:
    """Properties that only a condition names are shown too; the condition is kept for the check."""
    parts = [node.get("then"), node.get("else"), *node.get("dependentSchemas", {}).values()]
    properties, _ = united(part for part in parts if isinstance(part, dict))
    own = node.get("properties", {})
    added = {name: part for name, part in properties.items() if name not in own}
    if added:
        node["properties"] = {**own, **added}


def _alternatives(branches: list[Schema], keyword: str) -> str:
    texts = []
    for part in branches:
        properties = part.get("properties", {})
        names = part.get("required") or properties
        shown = ", ".join(_named(name, properties.get(name)) for name in names)
        title = part.get("title") or part.get("description")
        texts.append(f"{shown} ({title})" if isinstance(title, str) and shown else shown)
    distinct = list(dict.fromkeys(text for text in texts if text))
    if len(distinct) < 2:
        return ""
    much = "exactly" if keyword == "oneOf" else "at least"
    return f"Give {much} one of these groups: {'; '.join(distinct)}."


def _named(name: str, part: Any) -> str:
    fixed = isinstance(part, dict) and "const" in part
    return f"{name}={json.dumps(part['const'], ensure_ascii=False)}" if fixed else name


def _describe(node: Schema, sentence: str) -> None:
    text = node.get("description")
    if sentence:
        node["description"] = f"{text} {sentence}" if text else sentence


def _check_endless(root: Schema) -> None:
    """Refuses a schema that refers to itself for the same value: a check would not end."""
    done: set[str] = set()
    for start in ["#", *(f"#/$defs/{name}" for name in root.get("$defs", {}))]:
        _follow(start, root, [], done)


def _follow(reference: str, root: Schema, path: list[str], done: set[str]) -> None:
    if reference in path:
        raise ValueError(f"{reference} refers to itself without end")
    if len(path) > MAX_DEPTH:
        raise ValueError(f"it nests more than {MAX_DEPTH} schemas")
    if reference in done:
        return
    for inner in _in_place(target_of(reference, root), reference == "#"):
        _follow(inner, root, [*path, reference], done)
    done.add(reference)


def _in_place(node: Any, whole: bool = False) -> list[str]:
    found = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    for keyword, part in subschemas(node):
        if keyword in IN_PLACE and isinstance(part, dict):
            found += _in_place(part)
    return found
