"""Local references of a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote


def target_of(reference: str, root: Mapping[str, Any]) -> dict[str, Any]:
    """What the local `reference` (`#/…`) of the schema `root` leads to, else `ValueError`."""
    node: Any = root
    for part in unquote(reference).removeprefix("#").strip("/").split("/"):
        if not part:
            continue
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or name not in node:
            raise ValueError(f"{reference} leads nowhere")
        node = node[name]
    if not isinstance(node, dict):
        raise ValueError(f"{reference} leads to no schema")
    return node


def refers_to_itself(reference: str, root: Mapping[str, Any]) -> bool:
    """Whether following `reference` leads back to it."""
    seen: set[str] = set()
    waiting = list(_references(target_of(reference, root)))
    while waiting:
        found = waiting.pop()
        if found == reference:
            return True
        if found not in seen:
            seen.add(found)
            waiting += _references(target_of(found, root))
    return False


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, Mapping):
        for name, item in node.items():
            if name == "$ref" and isinstance(item, str):
                yield item
            elif name not in ("const", "default", "enum", "examples"):
                yield from _references(item)
