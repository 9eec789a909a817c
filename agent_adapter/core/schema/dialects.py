"""Pure functions from the normal form to a provider's form; none changes its argument."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.names import aliases
from agent_adapter.core.schema.keywords import mapped, subschemas
from agent_adapter.core.schema.references import target_of

Schema = dict[str, Any]

_MOST_INLINED = 10_000
"""The most schemas after inlining: references to references double with each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The documented limits of a provider's API; `None` if it has no documented limit.

    `tool_name` and `parameter_name` are patterns for whole names, `description` counts characters,
    `keywords` are those that are read, `needs_items` is true if an array must describe its items.
    """

    tool_name: str
    parameter_name: str | None = None
    description: int | None = None
    keywords: frozenset[str] | None = None
    properties: int | None = None
    enum_values: int | None = None
    nesting: int | None = None
    needs_items: bool = False
    empty_enum_text: bool = True
    union_at_the_top: bool = False
    text_beside_reference: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A provider's form of a schema: its limits, and the rewrites that enforce them, in order.

    Calling it with a schema in the normal form gives the provider's; `ValueError` names the place
    that it cannot express. Constraints that a rewrite drops are still checked when a call arrives.
    """

    name: str
    limits: Limits
    rewrites: tuple[Callable[[Schema, Limits], Schema], ...]

    def __call__(self, schema: Mapping[str, Any]) -> Schema:
        """`schema` in the provider's form."""
        result = neutral(schema)
        for rewrite in self.rewrites:
            result = rewrite(result, self.limits)
        return used_definitions(result)

    def tool(self, description: str, schema: Mapping[str, Any]) -> tuple[str, Schema]:
        """Description and schema; the rest of a description that is too long is in the schema."""
        result = self(schema)
        most = self.limits.description
        if most is None or len(description) <= most:
            return description, result
        cut = max(description.rfind(end, 0, most - 1) for end in ("\n", ". ", " "))
        cut = cut if cut > most // 2 else most - 1
        rest = description[cut:].strip()
        text = result.get("description")
        result["description"] = f"{rest}\n{text}" if text else rest
        return description[:cut].rstrip() + "…", result


def neutral(schema: Mapping[str, Any]) -> Schema:
    """A deep copy of `schema` without its top-level title; references are kept."""
    plain = copy.deepcopy(dict(schema))
    plain.pop("title", None)
    return plain


def inlined(schema: Mapping[str, Any]) -> Schema:
    """`schema` with every reference replaced by its target, and without `$defs`.

    Raises `ValueError` for a schema that refers to itself, and for one that would become too large.
    """
    left = _MOST_INLINED

    def expanded(node: Any, path: tuple[str, ...]) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"without references it has more than {_MOST_INLINED:,} schemas")
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return mapped(node, lambda part: expanded(part, path))
        if reference in path:
            raise ValueError(
                f"{reference} refers to itself, so it cannot be inlined; "
                "give the parameter a type that is not recursive, or keep the references"
            )
        target = expanded(target_of(reference, schema), (*path, reference))
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**target, **mapped(beside, lambda part: expanded(part, path))}

    plain = neutral(schema)
    plain.pop("$defs", None)
    result: Schema = copy.deepcopy(expanded(plain, ("#",)))
    return result


def used_definitions(schema: Schema) -> Schema:
    """`schema` without definitions that nothing refers to, which count against limits, too."""
    definitions = schema.get("$defs")
    if not definitions:
        return {key: value for key, value in schema.items() if key != "$defs"}
    used: set[str] = set()
    waiting: list[Any] = [{key: value for key, value in schema.items() if key != "$defs"}]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions and name not in used:
            used.add(name)
            waiting.append(definitions[name])
        waiting += [part for _, part in subschemas(node)]
    kept = {name: part for name, part in definitions.items() if name in used}
    rest = {key: value for key, value in schema.items() if key != "$defs"}
    return {**rest, "$defs": kept} if kept else rest


def breaches(limits: Limits, name: str, description: str, schema: Schema) -> list[str]:
    """The violations of `limits` by an emitted tool, and its references without a target."""
    found = []
    if not re.fullmatch(limits.tool_name, name):
        found.append(f"the name {name!r} does not match {limits.tool_name}")
    if limits.description is not None and len(description) > limits.description:
        found.append(f"the description has {len(description)} of {limits.description} characters")
    if not limits.union_at_the_top and schema.keys() & {"anyOf", "oneOf", "allOf", "not"}:
        found.append("the schema has a union at the top")
    nodes = list(_nodes(schema))
    for node, place in nodes:
        found += [f"{place}: {text}" for text in _of_node(limits, node, schema)]
    properties = sum(len(node.get("properties", ())) for node, _ in nodes)
    values = sum(len(node.get("enum", ())) for node, _ in nodes)
    totals = (
        (properties, limits.properties, "properties"),
        (values, limits.enum_values, "enum values"),
        (_nesting(schema, schema, ()), limits.nesting, "levels of nesting"),
    )
    return found + [
        f"the schema has {count} {what}, and {most} are the most"
        for count, most, what in totals
        if most is not None and count > most
    ]


def _of_node(limits: Limits, node: Schema, root: Schema) -> Iterable[str]:
    names = [name for name in node.get("properties", ()) if limits.parameter_name is not None]
    for name in names:
        if not re.fullmatch(limits.parameter_name or "", name):
            yield f"the parameter name {name!r} does not match {limits.parameter_name}"
    if limits.keywords is not None and (unknown := node.keys() - limits.keywords):
        yield f"the keywords {', '.join(sorted(unknown))} are not read"
    if limits.needs_items and node.get("type") == "array" and "items" not in node:
        yield "an array does not say of what"
    if not limits.empty_enum_text and "" in node.get("enum", ()):
        yield "an enum holds an empty text"
    missing = [name for name in node.get("required", ()) if name not in node.get("properties", ())]
    elsewhere = node.keys() & {"$ref", "allOf"}  # which may have the property
    if missing and "properties" in node and not elsewhere:
        yield f"{', '.join(missing)} is required and not a property"
    reference = node.get("$ref")
    if isinstance(reference, str):
        if not limits.text_beside_reference and len(node) > 1:
            yield "a reference has keywords beside it"
        try:
            target_of(reference, root)
        except ValueError as exc:
            yield str(exc)


def _nodes(schema: Schema, place: str = "schema") -> Iterable[tuple[Schema, str]]:
    yield schema, place
    for keyword, part in subschemas(schema):
        if isinstance(part, dict):
            yield from _nodes(part, f"{place}.{keyword}")


def _nesting(node: Any, root: Schema, path: tuple[str, ...]) -> int:
    """The depth of nested objects; references are followed until they recur."""
    if not isinstance(node, dict):
        return 0
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in path:
        return _nesting(target_of(reference, root), root, (*path, reference))
    parts = [part for keyword, part in subschemas(node) if keyword != "$defs"]
    deepest = max((_nesting(part, root, path) for part in parts), default=0)
    return deepest + ("properties" in node)


def renamed(schema: Schema, limits: Limits) -> Schema:
    """`schema` with the parameter names that the provider refuses under their aliases."""

    def change(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        names = {
            name: alias
            for name, alias in aliases(node.get("properties", ())).items()
            if limits.parameter_name and not re.fullmatch(limits.parameter_name, name)
        }
        node = mapped(node, change)
        if names:
            node["properties"] = {
                names.get(name, name): _told(part, name) if name in names else part
                for name, part in node["properties"].items()
            }
            for keyword in ("required", "propertyOrdering"):
                if keyword in node:
                    node[keyword] = [names.get(name, name) for name in node[keyword]]
        return node

    result: Schema = change(schema)
    return result


def _told(part: Any, name: str) -> Any:
    """Mention a renamed parameter's own name, which the descriptions use."""
    if not isinstance(part, dict):
        return part
    text = part.get("description")
    return {**part, "description": f"{text} (`{name}`)" if text else f"`{name}`"}
