"""Arguments as a form: one field per argument, JSON text for structured values.

A field that comes back unchanged keeps its argument exactly as it was: browsers rewrite line ends,
and a number has many spellings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_adapter.console.problems import Problem
from agent_adapter.core.inert import visible
from agent_adapter.core.schema.references import target_of
from agent_adapter.exec.masking import has_mask

Kind = Literal["text", "long", "integer", "number", "boolean", "choice", "date", "json", "masked"]

_LONG = 80
_ABSENT = object()
_MOST_STEPS = 8
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "characters: at least",
    "maxLength": "characters: at most",
    "pattern": "matches",
    "format": "format",
}
_INFINITE = (float("inf"), float("-inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the form: `text` is its content; an `optional` argument may be left out.

    A `nullable` one may be `null`, which `is_null` says of it now; `values` are what the `choices`
    stand for, `limits` what the schema demands, in words.
    """

    name: str
    kind: Kind
    text: str
    description: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False
    nullable: bool = False
    is_null: bool = False
    values: tuple[Any, ...] = ()
    limits: str = ""


def fields_of(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> list[Field]:
    """The fields for `arguments`, by the tool's schema or else by the values' types."""
    declared = dict((schema or {}).get("properties", {}))
    required = set((schema or {}).get("required", ()))
    names = [*arguments, *(name for name in declared if name not in arguments)]
    return [
        _field(
            name,
            arguments.get(name, _ABSENT),
            *_resolved(declared.get(name) or {}, schema or {}),
            optional=bool(schema) and name not in required,
        )
        for name in names
    ]


def read_form(
    arguments: Mapping[str, Any], fields: list[Field], form: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments of a submitted form; `Problem` 422 names each invalid field."""
    read, problems = dict[str, Any](), dict[str, str]()
    for field in fields:
        kept = arguments.get(field.name, _ABSENT)
        sent = form.get(f"arg:{field.name}")
        try:
            value = kept if sent is None else _read(field, kept, _lines(sent), form)
        except ValueError as exc:
            problems[field.name] = str(exc)
            continue
        if value is not _ABSENT:
            read[field.name] = value
    if problems:
        text = "; ".join(f"{name}: {why}" for name, why in problems.items())
        raise Problem(422, "tool-args-invalid", text, problems)
    return read


def _read(field: Field, kept: Any, sent: str, form: Mapping[str, str]) -> Any:
    """What the field says; `ValueError` says why it says nothing."""
    same = sent == _lines(field.text)
    is_text = field.kind in ("text", "long")
    if field.kind == "masked":
        return kept
    if is_text and field.nullable and f"none:{field.name}" in form:
        if same:
            return kept if field.is_null else None
        if not field.is_null:
            raise ValueError("both a text and 'not given': take one of them back")
    elif same and not (is_text and field.nullable and field.is_null and _was_sent(form)):
        return kept
    if sent.strip() == "" and not is_text and (field.nullable or field.optional):
        return None if field.nullable else _ABSENT
    return _value(field, sent)


def _was_sent(form: Mapping[str, str]) -> bool:
    """Whether the form is the page's own, whose empty text beside no mark is an empty text."""
    return "marks" in form


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """What a schema says about values other than `null`, and whether `null` is one of them."""
    found, nullable = schema, False
    for _ in range(_MOST_STEPS):
        if isinstance(found.get("$ref"), str):
            target = target_of(found["$ref"], root)
            found = {**target, **{k: v for k, v in found.items() if k != "$ref"}}
            continue
        options = found.get("anyOf") or found.get("oneOf")
        if not isinstance(options, list):
            break
        others = [each for each in options if each.get("type") != "null"]
        nullable = nullable or len(others) < len(options)
        if len(others) != 1:
            break
        rest = {k: v for k, v in found.items() if k not in ("anyOf", "oneOf")}
        found = {**others[0], **rest}
    kinds = found.get("type")
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        found = {**found, "type": next(each for each in kinds if each != "null")}
        nullable = True
    return found, nullable


def _field(
    name: str, value: Any, schema: Mapping[str, Any], nullable: bool, *, optional: bool
) -> Field:
    is_null = nullable and (value is None or value is _ABSENT)
    kind = _kind(_ABSENT if is_null else value, schema)
    values = _choices(schema) if kind == "choice" else ()
    return Field(
        name=name,
        kind=kind,
        text="" if is_null else _text(kind, value),
        description=str(schema.get("description", "")),
        choices=tuple(map(_choice_text, values)),
        values=values,
        optional=optional,
        nullable=nullable,
        is_null=is_null,
        limits=_limits(schema),
    )


def _kind(value: Any, schema: Mapping[str, Any]) -> Kind:
    if has_mask(value):
        return "masked"
    choices = _choices(schema)
    if choices and (value is _ABSENT or value in choices):
        return "choice"
    if value is _ABSENT:
        if schema.get("format") == "date":
            return "date"
        return _DECLARED.get(str(schema.get("type")), "json")
    if schema.get("format") == "date" and isinstance(value, str) and _DATE.fullmatch(value):
        return "date"
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


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    given = [schema["const"]] if "const" in schema else schema.get("enum")
    several = given if isinstance(given, list) else []
    return tuple(several) if all(isinstance(each, str | int | float) for each in several) else ()


def _choice_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _limits(schema: Mapping[str, Any]) -> str:
    """What the schema demands of a simple value, in words."""
    said = [
        f"{words} {schema[name]}"
        for name, words in _LIMITS.items()
        if isinstance(schema.get(name), int | float | str)
    ]
    return ", ".join(said)


def _text(kind: Kind, value: Any) -> str:
    if value is _ABSENT:
        return ""
    if kind in ("text", "long", "choice", "date"):
        return _choice_text(value)
    if kind == "json":
        return json.dumps(value, indent=2)
    return json.dumps(value)


def _value(field: Field, sent: str) -> Any:
    if field.kind == "choice":
        if sent not in field.choices:
            raise ValueError(f"{sent[:80]!r} is not one of {', '.join(field.choices)}")
        return field.values[field.choices.index(sent)]
    if field.kind == "date" and not _DATE.fullmatch(sent):
        raise ValueError(f"{sent[:80]!r} is not a date such as 2026-12-31")
    if field.kind in ("text", "long", "date"):
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


def _unreadable(field: Field, sent: str) -> ValueError:
    what = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
    wanted = what.get(field.kind, "JSON")
    return ValueError(f"{sent[:80]!r} is not {wanted}")


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
