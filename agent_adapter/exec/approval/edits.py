"""A reviewer's edit, checked before the decision is written: by the schema kept with the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json, to_json

from agent_adapter.core.errors import ToolArgsInvalid
from agent_adapter.core.problems import Path, capped, path_text
from agent_adapter.core.schema.from_json_schema import SchemaCheck
from agent_adapter.core.schema.references import target_of
from agent_adapter.core.types import ApprovalRequest
from agent_adapter.exec.masking import is_mask

_ABSENT = object()


def checked_edit(question: ApprovalRequest, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that an edit makes the call run with; `ToolArgsInvalid` names each problem.

    A default that the schema shows is filled in, so that what is shown is whole. A secret stays
    as it is: what a reviewer types would lie in the store in clear. A record of version 0.1 has no
    schema: its edits are checked when the call runs.
    """
    edited: dict[str, Any] = from_json(to_json(dict(arguments)))
    masked = dict(_masks(question.arguments))
    problems = [*_moved(edited, masked), *_new_secrets(question, edited, masked)]
    if problems:
        raise ToolArgsInvalid(question.tool, capped(problems))
    if not question.schema:
        return edited
    check = SchemaCheck(question.tool, question.schema)
    return _whole(check.schema, check.validate(question.tool, edited, frozenset(masked)))


def _masks(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    if is_mask(value):
        yield at, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _masks(item, (*at, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _masks(item, (*at, index))


def _moved(edited: Mapping[str, Any], masked: Mapping[Path, Any]) -> list[str]:
    """Secrets that were typed over, and masks at another place than their own."""
    typed = [at for at, mask in masked.items() if _at(edited, at) not in (_ABSENT, mask)]
    strange = [at for at, mask in _masks(edited) if masked.get(at) != mask and at not in typed]
    return [
        *(f"{path_text(at)}: is a secret, which an edit must leave as it is" for at in typed),
        *(f"{path_text(at)}: no such secret was asked about here" for at in strange),
    ]


def _new_secrets(
    question: ApprovalRequest, edited: Mapping[str, Any], masked: Mapping[Path, Any]
) -> list[str]:
    """Secrets that the call did not have."""
    found: list[Path] = [(name,) for name in question.secrets if name in edited]
    found += _write_only(question.schema, question.schema, edited)
    return [
        f"{path_text(at)}: is a secret, which an edit cannot give (expected to be left out)"
        for at in dict.fromkeys(found)
        if not any(at[: len(place)] == place for place in masked) and _at(edited, at) is not None
    ]


def _write_only(node: Any, root: Mapping[str, Any], value: Any, at: Path = ()) -> list[Path]:
    """Where `value` has something that the schema marks as secret."""
    found: list[Path] = []
    for option in _options(node, root):
        if option.get("writeOnly") is True:
            found.append(at)
        if isinstance(value, Mapping):
            known = option.get("properties", {})
            other = option.get("additionalProperties")
            for name, item in value.items():
                found += _write_only(known.get(name, other), root, item, (*at, name))
        elif isinstance(value, list):
            first = option.get("prefixItems", [])
            for index, item in enumerate(value):
                inner = first[index] if index < len(first) else option.get("items")
                found += _write_only(inner, root, item, (*at, index))
    return found


def _options(node: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and everything that it says about the same value."""
    waiting, seen = [node], set[int]()
    while waiting:
        each = waiting.pop()
        if not isinstance(each, Mapping) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(reference := each.get("$ref"), str):
            waiting.append(target_of(reference, root))
        for keyword in ("anyOf", "oneOf", "allOf"):
            waiting += each.get(keyword, ())


def _at(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return _ABSENT
    return value


def _whole(schema: Mapping[str, Any], edited: dict[str, Any]) -> dict[str, Any]:
    declared = schema.get("properties", {})
    defaults = {
        name: node["default"]
        for name, node in declared.items()
        if name not in edited and isinstance(node, Mapping) and "default" in node
    }
    return edited | defaults
