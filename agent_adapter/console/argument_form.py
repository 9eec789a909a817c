"""Arguments as a form: one field per argument, JSON text for structured values.

A field that comes back unchanged keeps its argument exactly as it was: browsers rewrite line ends,
and a number has many spellings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_adapter.console.problems import Problem
from agent_adapter.core.inert import visible
from agent_adapter.exec.masking import has_mask

Kind = Literal["text", "long", "integer", "number", "boolean", "choice", "json", "masked"]

_LONG = 80
_ABSENT = object()
_INFINITE = (float("inf"), float("-inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the form: `text` is its content; an `optional` argument may be left out."""

    name: str
    kind: Kind
    text: str
    description: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False


def fields_of(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> list[Field]:
    """The fields for `arguments`, by the tool's schema or else by the values' types."""
    declared = dict((schema or {}).get("properties", {}))
    required = set((schema or {}).get("required", ()))
    names = [*arguments, *(name for name in declared if name not in arguments)]
    return [
        _field(
            name,
            arguments.get(name, _ABSENT),
            declared.get(name) or {},
            optional=bool(schema) and name not in required,
        )
        for name in names
    ]


def read_form(
    arguments: Mapping[str, Any], fields: list[Field], form: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments of a submitted form; `Problem` 422 names the first invalid field."""
    read: dict[str, Any] = {}
    for field in fields:
        sent = form.get(f"arg:{field.name}")
        kept = arguments.get(field.name, _ABSENT)
        if sent is None or field.kind == "masked" or _lines(sent) == _lines(field.text):
            if kept is not _ABSENT:
                read[field.name] = kept
        elif sent.strip() == "" and field.optional and field.kind not in ("text", "long"):
            continue
        else:
            read[field.name] = _value(field, _lines(sent))
    return read


def _field(name: str, value: Any, schema: Mapping[str, Any], *, optional: bool) -> Field:
    kind = _kind(value, schema)
    choices = _choices(schema) if kind == "choice" else ()
    return Field(
        name=name,
        kind=kind,
        text=_text(kind, value),
        description=str(schema.get("description", "")),
        choices=choices,
        optional=optional,
    )


def _kind(value: Any, schema: Mapping[str, Any]) -> Kind:
    if has_mask(value):
        return "masked"
    choices = _choices(schema)
    if choices and (value is _ABSENT or value in choices):
        return "choice"
    if value is _ABSENT:
        return _DECLARED.get(str(schema.get("type")), "json")
    return _kind_of_value(value, schema)


def _kind_of_value(value: Any, schema: Mapping[str, Any]) -> Kind:
    # bool before int: a bool is an int in Python.
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        # 5 for a parameter of type number may become 5.5.
        return "number" if schema.get("type") == "number" else "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str) and visible(value) == value:
        return "long" if "\n" in value or len(value) > _LONG else "text"
    return "json"


def _choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    several = schema.get("enum")
    if isinstance(several, list) and several and all(isinstance(each, str) for each in several):
        return tuple(several)
    return ()


def _text(kind: Kind, value: Any) -> str:
    if value is _ABSENT:
        return ""
    if kind in ("text", "long", "choice"):
        return str(value)
    if kind == "json":
        return json.dumps(value, indent=2)
    return json.dumps(value)


def _value(field: Field, sent: str) -> Any:
    if field.kind in ("text", "long", "choice"):
        return sent
    try:
        value = json.loads(sent, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise _unreadable(field, sent) from exc
    wanted = _TYPES.get(field.kind)
    # json.loads reads a number that is too large for a float as infinity.
    if wanted is not None and (type(value) not in wanted or value in _INFINITE):
        raise _unreadable(field, sent)
    return value


def _unreadable(field: Field, sent: str) -> Problem:
    what = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
    wanted = what.get(field.kind, "JSON")
    return Problem(422, "tool-args-invalid", f"{field.name}: {sent[:80]!r} is not {wanted}")


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


_TYPES: dict[Kind, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_DECLARED: dict[str, Kind] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
