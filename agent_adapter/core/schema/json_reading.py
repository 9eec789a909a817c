"""Adapts Pydantic's core schema of arguments to JSON input."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, EncodedBytes, EncodedStr
from pydantic_core import SchemaValidator, core_schema

_NOT_SCHEMAS = frozenset({"cls", "config", "metadata", "serialization", "default", "expected"})


def json_validator(model: type[BaseModel]) -> Any:
    """The validator of `model` for arguments that come as JSON.

    A member of an enum in a `Literal`, and the tag of a union, are read from their values, which
    the JSON Schema shows. An iterable is read into a list, so that the function gets exactly the
    values that were checked, shown and recorded.
    """
    schema: Any = model.__pydantic_core_schema__
    changed = _changed(schema)
    if changed is schema:
        return model.__pydantic_validator__
    # Prebuilt validators of nested models would bring back the schema that was changed.
    return SchemaValidator(changed, _use_prebuilt=False)


def written_by_type(model: type[BaseModel]) -> frozenset[str]:
    """The fields of `model` that must be written by the serialisers of their types.

    `Json`, `Base64Str` and similar types decode the text that they read. `ValueError` names a
    field that also holds a secret, which such a serialiser would mask, or that no JSON can fill.
    """
    schema: Any = model.__pydantic_core_schema__
    shared = {each["ref"]: each for each in schema.get("definitions", ()) if "ref" in each}
    found = set()
    for name, part in _fields(schema).items():
        nodes = list(_nodes(part, shared))
        shown = model.model_fields[name].alias or name
        for node in nodes:
            if (refusal := _refusal(node)) is not None:
                raise ValueError(f"parameter {shown!r} {refusal}")
        if not any(map(_keeps_another, nodes)):
            continue
        if any(map(_is_secret, nodes)):
            raise ValueError(
                f"parameter {shown!r} holds a secret beside a type that is written otherwise than "
                "it is read, so no approval could be bound to it; take them apart"
            )
        found.add(name)
    return frozenset(found)


def holding_secrets(model: type[BaseModel]) -> frozenset[str]:
    """The fields of `model` with one of Pydantic's secrets anywhere inside."""
    schema: Any = model.__pydantic_core_schema__
    shared = {each["ref"]: each for each in schema.get("definitions", ()) if "ref" in each}
    parts = _fields(schema).items()
    return frozenset(name for name, part in parts if any(map(_is_secret, _nodes(part, shared))))


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    node: Any = schema
    while isinstance(node, Mapping) and "fields" not in node:
        node = node.get("schema")
    fields: Mapping[str, Any] = node["fields"] if isinstance(node, Mapping) else {}
    return fields


def _nodes(part: Any, shared: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every core schema in `part`, also those that it refers to, once."""
    waiting, seen = [part], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, (list, tuple)):
            waiting += node
        elif isinstance(node, Mapping):
            yield node
            reference = node.get("schema_ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                waiting.append(shared.get(reference))
            waiting += [inner for key, inner in node.items() if key not in _NOT_SCHEMAS]


def _keeps_another(node: Mapping[str, Any]) -> bool:
    writer = _writer(node)
    return node.get("type") == "json" or isinstance(getattr(writer, "__self__", None), EncodedStr)


def _refusal(node: Mapping[str, Any]) -> str | None:
    """The reason why no JSON value that fits the schema can become a value of this type."""
    if node.get("type") == "is-subclass":
        return "is a class, which JSON cannot carry; use a `Literal` of names"
    if isinstance(getattr(_writer(node), "__self__", None), EncodedBytes):
        return "is decoded twice: plain `bytes` travel as base64 already; use `bytes`"
    return None


def _is_secret(node: Mapping[str, Any]) -> bool:
    return str(getattr(_writer(node), "__name__", "")).startswith("_serialize_secret")


def _writer(node: Mapping[str, Any]) -> Any:
    writer = node.get("serialization")
    return writer.get("function") if isinstance(writer, Mapping) else None


def _changed(node: Any) -> Any:
    """`node` with its parts changed; the same object if nothing changes."""
    if isinstance(node, list):
        items = [_changed(item) for item in node]
        same = all(new is old for new, old in zip(items, node, strict=True))
        return node if same else items
    if isinstance(node, tuple):
        pair = tuple(_changed(item) for item in node)
        return node if all(new is old for new, old in zip(pair, node, strict=True)) else pair
    if not isinstance(node, dict):
        return node
    parts = {key: part if key in _NOT_SCHEMAS else _changed(part) for key, part in node.items()}
    if all(parts[key] is node[key] for key in node):
        parts = node
    change = _CHANGES.get(str(node.get("type")))
    return parts if change is None else change(parts)


def _literal(node: dict[str, Any]) -> Any:
    members = [each for each in node["expected"] if isinstance(each, enum.Enum)]
    if not members:
        return node

    def member(value: Any) -> Any:
        for each in members:
            if type(each.value) is type(value) and each.value == value:
                return each
        return value

    return core_schema.no_info_before_validator_function(
        member, core_schema.literal_schema(node["expected"]), ref=node.get("ref")
    )


def _tagged_union(node: dict[str, Any]) -> Any:
    choices = node["choices"]
    values = {key.value: part for key, part in choices.items() if isinstance(key, enum.Enum)}
    return {**node, "choices": {**choices, **values}} if values else node


def _generator(node: dict[str, Any]) -> Any:
    kept = ("items_schema", "min_length", "max_length", "ref", "metadata")
    return {"type": "list", **{key: node[key] for key in kept if key in node}}


_CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "literal": _literal,
    "tagged-union": _tagged_union,
    "generator": _generator,
}
