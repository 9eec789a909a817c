"""The one resolver of `$ref`: inside the schema, never over the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from agent_adapter.core.schema.keywords import subschemas


class References:
    """The reference targets of a foreign schema: pointers, `$anchor`s and embedded `$id`s.

    `base` is the URI of the enclosing resource, `""` if there is none.
    """

    def __init__(self, root: Any) -> None:
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[str, Any] = {}
        self.base = ""
        self._index(root)

    def target(self, reference: str, base: str) -> tuple[Any, str]:
        """The target of `reference` and its base; `ValueError` if it is not in the schema."""
        uri, fragment = urldefrag(urljoin(base, reference))
        anchor = self._anchors.get(f"{uri}#{fragment}")
        if anchor is not None:
            return anchor, uri
        # Many generators write pointers from the root inside of embedded resources.
        places = [(self._resources[uri], uri)] if uri in self._resources else []
        if reference.startswith("#"):
            places.append((self._resources[""], self.base))
        if not fragment or fragment.startswith("/"):
            for resource, at in places:
                found = self._at(resource, fragment, at)
                if found is not None:
                    return found
        raise ValueError(
            f"it refers to {reference!r}, which is not in it; put what it refers to under `$defs`"
        )

    def _at(self, node: Any, pointer: str, base: str) -> tuple[Any, str] | None:
        for name in _parts(pointer):
            if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
                node = node[int(name)]
            elif isinstance(node, Mapping) and name in node:
                node = node[name]
            else:
                return None
            base = base_of(node, base)
        return node, base

    def _index(self, root: Any) -> None:
        waiting = [(root, "")]
        while waiting:
            node, base = waiting.pop()
            if not isinstance(node, (dict, Mapping)):
                continue
            base = base_of(node, base)
            if node is root:
                self.base = base
            if base not in self._resources:
                self._resources[base] = node
            for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
                name = node.get(keyword)
                if isinstance(name, str) and (keyword[1:2] != "i" or name.startswith("#")):
                    self._anchors.setdefault(f"{base}#{name.lstrip('#')}", node)
            waiting += [(part, base) for part in _older_subschemas(node)]


def base_of(node: Any, base: str) -> str:
    """The base URI inside `node`: its own `$id` (`id` in draft 4), else `base`."""
    if not isinstance(node, (dict, Mapping)):
        return base
    own = node.get("$id", node.get("id"))
    if not isinstance(own, str) or own.startswith("#") or not own:
        return base
    return urldefrag(urljoin(base, own)).url


def _older_subschemas(node: Mapping[str, Any]) -> Iterator[Any]:
    yield from (part for _, part in subschemas(node))
    for keyword in ("definitions", "dependencies"):
        parts = node.get(keyword)
        if isinstance(parts, Mapping):
            yield from parts.values()
    if isinstance(node.get("items"), list):
        yield from node["items"]


def target_of(reference: str, root: Mapping[str, Any]) -> dict[str, Any]:
    """The target of a reference of the normal form (`#` or `#/…`); `ValueError` without one."""
    node: Any = root
    for name in _parts(reference.removeprefix("#")):
        if not isinstance(node, Mapping) or name not in node:
            raise ValueError(f"{reference} leads nowhere")
        node = node[name]
    if not isinstance(node, dict):
        raise ValueError(f"{reference} leads to no schema")
    return node


def refers_to_itself(reference: str, root: Mapping[str, Any]) -> bool:
    """Whether following `reference` leads back to it."""
    seen: set[str] = set()
    waiting = list(_references(target_of(reference, root), whole=reference == "#"))
    while waiting:
        found = waiting.pop()
        if found == reference:
            return True
        if found not in seen:
            seen.add(found)
            waiting += _references(target_of(found, root), whole=found == "#")
    return False


def _references(node: Any, *, whole: bool = False) -> Iterator[str]:
    """The references in `node`; of a `whole` schema its definitions are not part of the value."""
    if isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
        yield node["$ref"]
    for keyword, part in subschemas(node):
        if not (whole and keyword == "$defs"):
            yield from _references(part)


def _parts(pointer: str) -> list[str]:
    """The names of a JSON pointer, unescaped."""
    if not pointer or pointer == "/":
        return []
    return [
        part.replace("~1", "/").replace("~0", "~")
        for part in unquote(pointer).removeprefix("/").split("/")
    ]
