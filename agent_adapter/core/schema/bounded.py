"""Validates by a JSON Schema in bounded time for every schema and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import jsonschema
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing.jsonschema import EMPTY_REGISTRY

from agent_adapter.core.schema.keywords import subschemas
from agent_adapter.core.schema.meta import problem_of
from agent_adapter.core.schema.pattern_size import MOST
from agent_adapter.core.schema.patterns import compiled

MAX_STEPS = 200_000
"""The most schemas that one check may visit; unions in recursive schemas can need billions."""

_STEPS = 2_000
_STEPS_PER_VALUE = 20

_steps: ContextVar[list[int]] = ContextVar("steps_left")


class TooManySteps(Exception):
    """The check visited `MAX_STEPS` schemas and did not end."""


def checker(schema: Mapping[str, Any]) -> Validator:
    """A validator of a schema in the normal form; `ValueError` names the problem of the schema."""
    problem = problem_of(schema)
    if problem is not None:
        raise ValueError(f"it is invalid at {problem}")
    _compile_patterns(schema)
    # A registry of its own: the default one would fetch references from the network.
    made: Validator = _Checker(schema, registry=EMPTY_REGISTRY)
    return made


def problems_of(validator: Validator, value: Any) -> Iterator[ValidationError]:
    """The problems of `value`; raises `TooManySteps` if the check would take too long."""
    token = _steps.set([_allowed(value)])
    try:
        yield from validator.iter_errors(value)
    finally:
        _steps.reset(token)


def _allowed(value: Any) -> int:
    """The steps for a value: a check that ends takes a number of them for each of its parts."""
    count, waiting = 0, [value]
    while waiting and _STEPS + _STEPS_PER_VALUE * count < MAX_STEPS:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return min(MAX_STEPS, _STEPS + _STEPS_PER_VALUE * count)


def _spend(count: int = 1) -> None:
    left = _steps.get()
    left[0] -= count
    if left[0] < 0:
        raise TooManySteps


def _compile_patterns(schema: Mapping[str, Any]) -> None:
    found: dict[str, None] = {}
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (dict, Mapping)):
            patterns = (node.get("pattern"), *node.get("patternProperties", ()))
            found |= dict.fromkeys(each for each in patterns if isinstance(each, str))
            waiting += [part for _, part in subschemas(node)]
    size = 0.0
    for pattern in found:
        size += compiled(pattern).size
        if size > MOST:
            raise ValueError("its patterns take too long to compile; use fewer or simpler ones")


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not compiled(pattern).matches(value):
        yield ValidationError(f"{value[:80]!r} does not match {pattern[:80]!r}")


def _pattern_properties(
    validator: Any, patterns: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, part in patterns.items():
        expression = compiled(pattern)
        _spend(len(value))
        for name, item in value.items():
            if expression.matches(name):
                yield from validator.descend(item, part, path=name, schema_path=pattern)


def _additional(validator: Any, part: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    patterns = [compiled(pattern) for pattern in schema.get("patternProperties", ())]
    _spend(1 + len(value) * len(patterns))
    extra = [
        name
        for name in value
        if name not in known and not any(pattern.matches(name) for pattern in patterns)
    ]
    if isinstance(part, Mapping):
        for name in extra:
            yield from validator.descend(value[name], part, path=name)
    elif part is False and extra:
        yield ValidationError("it has properties that it cannot have")


def _unique(validator: Any, unique: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and isinstance(value, list) and len(set(map(_identity, value))) < len(value):
        yield ValidationError("it has the same item twice")


def _identity(value: Any) -> Any:
    """Equal for values that are equal in JSON Schema: 1 and 1.0, but not 1 and true."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list):
        return ("array", *map(_identity, value))
    if isinstance(value, dict):
        return frozenset((name, _identity(item)) for name, item in value.items())
    return value


def _any_of(validator: Any, parts: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    for part in parts:
        _spend()
        if validator.evolve(schema=part).is_valid(value):
            return
    yield ValidationError(_no_match(validator, schema, value))


def _one_of(validator: Any, parts: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    fitting = 0
    for part in parts:
        _spend()
        fitting += validator.evolve(schema=part).is_valid(value)
    if fitting == 0:
        yield ValidationError(_no_match(validator, schema, value))
    elif fitting > 1:
        yield ValidationError(f"it fits {fitting} alternatives of which it may fit only one")


def _no_match(validator: Any, schema: Any, value: Any) -> str:
    """Does not quote the value: its text would cost its size at every union."""
    shown = repr(value) if isinstance(value, (int, float, bool, type(None))) else ""
    shown = repr(value[:80]) if isinstance(value, str) else shown
    return f"{shown or 'it'} fits none of the alternatives"


def _counted(check: Any) -> Any:
    """`check`, with each visit counted as a step."""

    def counted(validator: Any, part: Any, value: Any, schema: Any) -> Any:
        _spend(1 + (len(value) if isinstance(value, (list, dict)) else 0))
        return check(validator, part, value, schema) or ()

    return counted


_own = Draft202012Validator.VALIDATORS
_extend: Any = jsonschema.validators.extend
_Checker: Any = _extend(
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional,
        "uniqueItems": _unique,
        "anyOf": _any_of,
        "oneOf": _one_of,
        **{
            keyword: _counted(_own[keyword])
            for keyword in ("$ref", "allOf", "not", "if", "items", "prefixItems", "contains",
                            "properties", "propertyNames", "dependentSchemas",
                            "unevaluatedItems", "unevaluatedProperties")
        },
    },
)  # fmt: skip
