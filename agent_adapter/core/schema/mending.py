"""Mends arguments that differ from the schema only in how the JSON was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.names import aliases
from agent_adapter.core.schema.keywords import subschemas
from agent_adapter.core.schema.references import target_of

_DEEPEST = 200


def mended(schema: Mapping[str, Any], arguments: Any, *, json_text: bool = False) -> Any:
    """`arguments` as `schema`, in the normal form, describes them.

    A null for an optional property that cannot be null is dropped; 5.0 becomes 5 for an integer; a
    provider's alias becomes the property's name. With `json_text`, the JSON text of an object or
    array is decoded. Everything else is left unchanged for the check to refuse. If nothing changes,
    the same object is returned.
    """
    return _Mender(schema, json_text).value(schema, arguments, 0)


class _Mender:
    """One pass over arguments and schema."""

    def __init__(self, root: Mapping[str, Any], json_text: bool) -> None:
        self._root = root
        self._json_text = json_text

    def value(self, node: Any, value: Any, depth: int) -> Any:
        node = self._followed(node)
        if node is None or depth > _DEEPEST:
            return value
        if isinstance(value, str):
            return self._text(node, value, depth) if self._json_text else value
        if isinstance(value, float):
            return self._number(node, value)
        members = node.get("anyOf", node.get("oneOf"))
        if members and "properties" not in node:
            return self._of_union(members, value, depth)
        for part in node.get("allOf", ()):
            value = self.value(part, value, depth + 1)
        if isinstance(value, list):
            return self._list(node, value, depth)
        return self._object(node, value, depth) if isinstance(value, Mapping) else value

    def _followed(self, node: Any) -> Mapping[str, Any] | None:
        for _ in range(_DEEPEST):
            if not isinstance(node, Mapping):
                return None
            if not isinstance(node.get("$ref"), str):
                return node
            beside = {key: value for key, value in node.items() if key != "$ref"}
            node = {**target_of(node["$ref"], self._root), **beside}
        return None

    def _object(self, node: Mapping[str, Any], value: Mapping[str, Any], depth: int) -> Any:
        properties = node.get("properties", {})
        required, other = node.get("required", ()), node.get("additionalProperties")
        named = {alias: name for name, alias in aliases(properties).items()}
        result: dict[str, Any] = {}
        for key, item in value.items():
            name = key
            if key in named and key not in properties and named[key] not in value:
                name = named[key]
            if name not in properties:
                result[name] = self.value(other, item, depth + 1)
            elif item is not None or name in required or takes_null(properties[name], self._root):
                result[name] = self.value(properties[name], item, depth + 1)
        same = len(result) == len(value) and all(
            result.get(key, self) is value[key] for key in value
        )
        return value if same else result

    def _list(self, node: Mapping[str, Any], value: list[Any], depth: int) -> Any:
        first, rest = node.get("prefixItems", ()), node.get("items")
        result = [
            self.value(first[place] if place < len(first) else rest, item, depth + 1)
            for place, item in enumerate(value)
        ]
        return value if all(new is old for new, old in zip(result, value, strict=True)) else result

    def _number(self, node: Mapping[str, Any], value: float) -> Any:
        """Pydantic's strict integers refuse 5.0, which JSON Schema calls an integer."""
        whole = value.is_integer() and abs(value) < 2**63
        return int(value) if whole and self._is_integer(node) else value

    def _is_integer(self, node: Any) -> bool:
        node = self._followed(node)
        if node is None:
            return False
        if "type" in node or "enum" in node or "const" in node:
            listed = node.get("enum", [node.get("const")])
            return node.get("type") == "integer" or (
                "type" not in node
                and any(type(each) is int for each in listed)
                and not any(isinstance(each, float) for each in listed)
            )
        members = node.get("anyOf", node.get("oneOf", ()))
        numbers = [part for part in members if (self._followed(part) or {}).get("type") == "number"]
        return not numbers and any(map(self._is_integer, members))

    def _text(self, node: Mapping[str, Any], value: str, depth: int) -> Any:
        parsed = json_text_at(node, value, self._root)
        return value if parsed is None else self.value(node, parsed, depth + 1)

    def _of_union(self, members: list[Any], value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            member = self._member(members, value)
            return value if member is None else self.value(member, value, depth + 1)
        for part in members:
            member = self._followed(part)
            if isinstance(value, list) and member is not None and member.get("type") == "array":
                return self.value(member, value, depth + 1)
        return value

    def _member(self, members: list[Any], value: Mapping[str, Any]) -> Any:
        """The alternative that `value` was written for: by its constants, then by its names."""
        best, most = None, -1
        for part in members:
            member = self._followed(part)
            if member is None:
                continue
            if "anyOf" in member and "properties" not in member:
                member = self._followed(self._member(member["anyOf"], value)) or member
            properties = member.get("properties", {})
            if any(name not in value for name in member.get("required", ())) or any(
                "const" in part and name in value and value[name] != part["const"]
                for name, part in properties.items()
                if isinstance(part, Mapping)
            ):
                continue
            unknown = sum(name not in properties for name in value)
            fitting = len(value) - 2 * unknown
            if ("properties" in member or member.get("type") == "object") and fitting > most:
                best, most = member, fitting
        return best


def has_aliases(schema: Any) -> bool:
    """Whether some provider refuses the name of a property anywhere in `schema`."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if aliases(part.get("properties", ())):
                return True
            waiting += [inner for _, inner in subschemas(part)]
    return False


def takes_null(node: Any, root: Mapping[str, Any]) -> bool:
    """Whether `node` accepts null."""
    if node is True:
        return True
    if not isinstance(node, Mapping):
        return False
    if isinstance(node.get("$ref"), str):
        return takes_null(target_of(node["$ref"], root), root)
    if "const" in node:
        return node["const"] is None
    if "enum" in node:
        return None in node["enum"]
    members = node.get("anyOf", node.get("oneOf"))
    if members is not None:
        return any(takes_null(member, root) for member in members)
    if any(not takes_null(part, root) for part in node.get("allOf", ())):
        return False
    return node.get("type", "null") == "null" and not node.keys() & {"properties", "not"}


def json_text_at(node: Any, value: Any, root: Mapping[str, Any]) -> Any:
    """The object or array in the JSON text `value`, if `node` does not accept text."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return None
    kinds = _kinds(node, root, 0)
    kind = "object" if isinstance(parsed, dict) else "array"
    return parsed if kind in kinds and "string" not in kinds else None


def _kinds(node: Any, root: Mapping[str, Any], depth: int) -> set[str]:
    """The types that `node` names."""
    if not isinstance(node, Mapping) or depth > _DEEPEST:
        return set()
    found = {str(node["type"])} if "type" in node else set()
    if not found and "properties" in node:
        found = {"object"}
    parts = [*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())]
    if isinstance(node.get("$ref"), str):
        parts.append(target_of(node["$ref"], root))
    for part in parts:
        found |= _kinds(part, root, depth + 1)
    return found
