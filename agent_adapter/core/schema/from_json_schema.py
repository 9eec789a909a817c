"""Arguments of a foreign tool, checked against the JSON Schema it came with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import jsonschema
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from pydantic_core import from_json, to_json
from referencing.jsonschema import EMPTY_REGISTRY

from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.json_values import SecretWriter, in_clear, json_ready
from agent_adapter.core.problems import capped, path_text, unknown_argument, unwritable
from agent_adapter.core.schema.annotations import Resolver
from agent_adapter.core.schema.dialects import neutral
from agent_adapter.core.schema.injection import Injection, injection_of

_SHOWN = 80
_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are data, in which `$ref` means nothing."""


class SchemaCheck:
    """Arguments checked by a JSON Schema (2020-12, or the draft that `$schema` names).

    `reserved` are names that the library fills in, which arguments therefore cannot have.
    """

    __slots__ = ("_reserved", "_validator", "schema")

    def __init__(
        self, tool: str, schema: Mapping[str, Any], reserved: frozenset[str] = frozenset()
    ) -> None:
        self.schema: Mapping[str, Any] = _checked_schema(tool, schema)
        kind = validator_for(self.schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(self.schema)
        except SchemaError as exc:
            where = path_text(tuple(exc.path))
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema is invalid at {where}: {exc.message}"
            ) from exc
        _check_references(tool, self.schema)
        _check_reserved(tool, self.schema, reserved)
        self._reserved = reserved
        # A registry of its own: the default one would fetch references from the network.
        self._validator: Validator = kind(self.schema, registry=EMPTY_REGISTRY)

    def validate(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of `args` as JSON values; `ToolArgsInvalid` has one line per field."""
        try:
            copied = _json_copy(args)
            problems = self._problems(copied)
        except Exception as exc:
            problems = [_refusal(args, exc)]
        if problems:
            raise ToolArgsInvalid(tool, capped(problems))
        return copied

    def public(self, values: Mapping[str, Any], secret: SecretWriter = in_clear) -> dict[str, Any]:
        """`values` as JSON-able Python; a foreign tool's names are the schema's."""
        return {name: json_ready(value, secret) for name, value in values.items()}

    def public_name(self, parameter: str) -> str:
        """`parameter` itself."""
        return parameter

    def serialised(self, values: Mapping[str, Any]) -> bytes:
        """`values` as JSON; they came from JSON."""
        return to_json(values, bytes_mode="base64", fallback=str)

    def _problems(self, args: dict[str, Any]) -> list[str]:
        known = self.schema.get("properties", {})
        taken = [name for name in args if name in self._reserved]
        found = dict.fromkeys(unknown_argument(name, known) for name in taken)
        for error in self._validator.iter_errors(args):
            for line in _lines(error, args):
                found.setdefault(line)
        return list(found)


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
            continue  # not a type of ours: the caller's schema describes this parameter
        injection = injection_of(parameter.name, annotation)
        if injection is not None:
            found.append(injection)
    return tuple(found)


def _checked_schema(tool: str, schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ToolDefinitionError(
            f"tool {tool!r}: its JSON Schema is an object, not {type(schema).__name__}"
        )
    copied = neutral(schema)
    kind = copied.setdefault("type", "object")
    if kind != "object":
        raise ToolDefinitionError(
            f"tool {tool!r}: its JSON Schema describes {kind!r}; arguments are always an 'object'"
        )
    try:
        to_json(copied)
    except Exception as exc:
        raise ToolDefinitionError(
            f"tool {tool!r}: its JSON Schema holds something that is not JSON ({exc})"
        ) from exc
    return copied


def _check_references(tool: str, schema: Mapping[str, Any]) -> None:
    """Refuses references that lead out of the schema: nothing is ever fetched for a check."""
    for reference in _references(schema):
        if reference.startswith("#/"):
            if _leads_somewhere(reference, schema):
                continue
        elif reference.startswith("#") or "$id" in schema:
            continue
        raise ToolDefinitionError(
            f"tool {tool!r}: its JSON Schema refers to {reference!r}, which is not in it; put what "
            "it refers to under `$defs`"
        )


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, Mapping):
        for name, item in node.items():
            if name == "$ref" and isinstance(item, str):
                yield item
            elif name not in _DATA:
                yield from _references(item)


def _leads_somewhere(reference: str, schema: Mapping[str, Any]) -> bool:
    node: Any = schema
    for part in unquote(reference).removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, Mapping) and name in node:
            node = node[name]
        else:
            return False
    return True


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
    if "at line" in str(exc):
        return "arguments: NaN and infinity are not JSON (expected finite numbers)"
    return unwritable(exc)


def _lines(error: jsonschema.ValidationError, args: dict[str, Any]) -> list[str]:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = [name for name in error.instance if name not in known]
        prefix = path_text(path) + "." if path else ""
        return [prefix + unknown_argument(name, known) for name in extra]
    if error.validator == "required" and isinstance(error.instance, Mapping):
        missing = [name for name in _texts(error.validator_value) if name not in error.instance]
        return [
            f"{path_text((*path, name))}: is missing (expected {_expected(error.schema, name)})"
            for name in missing
        ]
    message = error.message if len(error.message) <= 3 * _SHOWN else error.message[:_SHOWN] + "…"
    return [f"{path_text(path)}: {message} (expected {_rule(error)})"]


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _expected(schema: Any, name: str) -> str:
    node = schema.get("properties", {}).get(name, {}) if isinstance(schema, Mapping) else {}
    kind = node.get("type") if isinstance(node, Mapping) else None
    return str(kind) if kind else "a value that the schema allows"


def _rule(error: jsonschema.ValidationError) -> str:
    value = str(error.validator_value)
    return f"{error.validator} {value if len(value) <= _SHOWN else value[:_SHOWN] + '…'}"
