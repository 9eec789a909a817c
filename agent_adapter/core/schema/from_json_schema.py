"""Arguments of a foreign tool, checked by the tool's JSON Schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from pydantic_core import from_json, to_json

from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.json_values import SecretWriter, in_clear, json_ready
from agent_adapter.core.problems import (
    JSON_TEXT,
    Path,
    capped,
    expected_at,
    fields_at,
    path_text,
    unknown_argument,
    unwritable,
)
from agent_adapter.core.schema.annotations import Resolver
from agent_adapter.core.schema.bounded import TooManySteps, checker, problems_of
from agent_adapter.core.schema.injection import Injection, injection_of
from agent_adapter.core.schema.mending import has_aliases, json_text_at, mended
from agent_adapter.core.schema.normal import normal

_SHOWN = 80
_MOST_ERRORS = 1000
"""The most problems of one call that are counted."""

_LARGE = 5_000
"""The number of values above which a check takes tens of milliseconds."""


class SchemaCheck:
    """Arguments checked by a JSON Schema of any draft.

    `schema` is its normal form. `reserved` are names that the library fills in, which arguments
    therefore cannot have.
    """

    __slots__ = ("_aliased", "_reserved", "_validator", "may_be_slow", "schema")

    def __init__(
        self, tool: str, schema: Mapping[str, Any], reserved: frozenset[str] = frozenset()
    ) -> None:
        try:
            self.schema: Mapping[str, Any] = normal(schema)
            self._validator: Validator = checker(self.schema)
        except ValueError as exc:
            text = str(exc).removeprefix("it ")
            raise ToolDefinitionError(f"tool {tool!r}: its JSON Schema {text}") from exc
        _check_reserved(tool, self.schema, reserved)
        self.may_be_slow = True
        self._reserved = reserved
        self._aliased = has_aliases(self.schema)

    def validate(
        self, tool: str, args: Mapping[str, Any], masked: Collection[Path] = ()
    ) -> dict[str, Any]:
        """A copy of `args` as JSON values; `ToolArgsInvalid` has one line per field.

        `masked` are the places of secrets that are not known here: what is there is not checked.
        """
        try:
            copied = self._copied(args)
            problems = self._problems(copied, masked)
            if problems:
                meant = mended(self.schema, copied)
                if meant is not copied:
                    copied, problems = meant, self._problems(meant, masked)
        except Exception as exc:
            problems = [_refusal(args, exc)]
        if problems:
            raise ToolArgsInvalid(tool, capped(problems))
        return copied

    def is_large(self, args: Any) -> bool:
        """Whether checking `args` takes so long that it must not run on the event loop."""
        return _size(args, _LARGE) >= _LARGE

    def public(self, values: Mapping[str, Any], secret: SecretWriter = in_clear) -> dict[str, Any]:
        """`values` as JSON-able Python; a foreign tool's names are the schema's."""
        return {name: json_ready(value, secret) for name, value in values.items()}

    def public_name(self, parameter: str) -> str:
        """`parameter` itself."""
        return parameter

    def serialised(self, values: Mapping[str, Any]) -> bytes:
        """`values` as JSON; they came from JSON."""
        return to_json(values, bytes_mode="base64", fallback=str)

    def _copied(self, args: Any) -> dict[str, Any]:
        copied = _json_copy(args)
        # An open object would take an alias for a name of its own.
        return mended(self.schema, copied) if self._aliased else copied

    def _problems(self, args: dict[str, Any], masked: Collection[Path]) -> list[str]:
        known = self.schema.get("properties", {})
        taken = [name for name in args if name in self._reserved]
        found = dict.fromkeys(unknown_argument(name, known) for name in taken)
        for error in islice(problems_of(self._validator, args), _MOST_ERRORS):
            if masked and _is_of_mask(error, masked):
                continue
            for line in self._lines(error):
                found.setdefault(line)
        return list(found)

    def _lines(self, error: Any) -> list[str]:
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties" and error.validator_value is False:
            known = fields_at(self.schema, path)
            extra = [name for name in error.instance if name not in known]
            prefix = path_text(path) + "." if path else ""
            return [prefix + unknown_argument(name, known) for name in extra]
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return [
                f"{path_text((*path, name))}: is missing "
                f"(expected {expected_at(self.schema, (*path, name))})"
                for name in missing
            ]
        if json_text_at(error.schema, error.instance, self.schema) is not None:
            return [f"{path_text(path)}: {JSON_TEXT} (expected {expected_at(self.schema, path)})"]
        message = error.message
        message = message if len(message) <= 3 * _SHOWN else message[:_SHOWN] + "…"
        return [f"{path_text(path)}: {message} (expected {self._rule(error, path)})"]

    def _rule(self, error: ValidationError, path: tuple[str | int, ...]) -> str:
        if error.validator in ("anyOf", "oneOf", "type"):
            return expected_at(self.schema, path)
        value = str(error.validator_value)
        return f"{error.validator} {value if len(value) <= _SHOWN else value[:_SHOWN] + '…'}"


def _is_of_mask(error: ValidationError, masked: Collection[Path]) -> bool:
    """Whether a problem is at the place of a mask, or that no alternative allows a mask there."""
    path = tuple(error.absolute_path)
    around = path != () and error.validator in ("anyOf", "oneOf")
    return any(
        path[: len(place)] == place or (around and place[: len(path)] == path) for place in masked
    )


def injected_by_annotation(name: str, fn: Callable[..., Any]) -> tuple[Injection, ...]:
    """The parameters of `fn` that the library fills in; the others are the foreign tool's own."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return ()
    resolver = Resolver(name, fn)
    found = []
    for parameter in parameters:
        if parameter.annotation is inspect.Parameter.empty:
            continue
        try:
            annotation = resolver.resolve(f"parameter {parameter.name!r}", parameter.annotation)
        except ToolDefinitionError:
            continue  # not an injected type: the caller's schema describes this parameter
        injection = injection_of(parameter.name, annotation)
        if injection is not None:
            found.append(injection)
    return tuple(found)


def _check_reserved(tool: str, schema: Mapping[str, Any], reserved: frozenset[str]) -> None:
    for name in sorted(reserved.intersection(schema.get("properties", {}))):
        raise ToolDefinitionError(
            f"tool {tool!r}: its JSON Schema has an argument {name!r}, which the function receives "
            "from the library; rename the function's parameter"
        )


def _json_copy(args: Any) -> dict[str, Any]:
    if not isinstance(args, Mapping):
        raise TypeError("arguments are not an object")
    if not all(isinstance(name, str) for name in args):
        raise TypeError("argument names are strings")
    data = to_json(json_ready(args), bytes_mode="base64")
    copied: dict[str, Any] = from_json(data, allow_inf_nan=False)
    return copied


def _refusal(args: Any, exc: Exception) -> str:
    if not isinstance(args, Mapping):
        return f"arguments: got {type(args).__name__} (expected an object with string keys)"
    for name in args:
        if not isinstance(name, str):
            return unknown_argument(name, ())
    if isinstance(exc, TooManySteps):
        return "arguments: checking them takes too long (expected fewer or simpler values)"
    if "at line" in str(exc):
        return "arguments: NaN and infinity are not JSON (expected finite numbers)"
    return unwritable(exc)


def _size(value: Any, most: int) -> int:
    """The number of values in `value`, counted up to `most`; long texts count by length."""
    count, waiting = 0, [value]
    while waiting and count < most:
        item = waiting.pop()
        count += 1
        if isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, (list, tuple)):
            waiting += item
        elif isinstance(item, str):
            count += len(item) // 1000
    return count
