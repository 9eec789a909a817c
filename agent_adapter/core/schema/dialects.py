"""Pure functions from JSON Schema to JSON Schema; none changes what it is given."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

_LOCAL = ("#/$defs/", "#/definitions/")


def neutral(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of `schema` without its top-level title; references stay as they are."""
    plain = copy.deepcopy(dict(schema))
    plain.pop("title", None)
    return plain


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with every local reference replaced by what it refers to, and no `$defs`.

    Raises `ValueError` for a schema that refers to itself, and for a reference that leads nowhere.
    """
    plain = neutral(schema)
    targets = {
        prefix + name: target
        for prefix in _LOCAL
        for name, target in plain.pop(prefix[2:-1], {}).items()
    }
    result = _expanded(plain, targets, ())
    if not isinstance(result, dict):
        raise ValueError("the schema of a tool's arguments is an object")
    return result


def _expanded(node: Any, targets: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_expanded(item, targets, path) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return {name: _expanded(item, targets, path) for name, item in node.items()}
    if reference in path:
        raise ValueError(
            f"{reference} refers to itself, so it cannot be inlined; "
            "give the parameter a type that is not recursive, or keep the references"
        )
    if reference not in targets:
        raise ValueError(
            f"{reference} leads nowhere: the schema defines {sorted(targets) or 'none'}"
        )
    target = _expanded(copy.deepcopy(targets[reference]), targets, (*path, reference))
    beside = {name: _expanded(item, targets, path) for name, item in node.items() if name != "$ref"}
    return {**target, **beside} if isinstance(target, dict) else target
