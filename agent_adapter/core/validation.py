"""Validates arguments once: the same values are bound, shown, recorded and passed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from agent_adapter.core.errors import ToolArgsInvalid
from agent_adapter.core.json_values import SecretWriter, in_clear, json_ready, needs_rewriting
from agent_adapter.core.problems import capped, field_problems, unknown_argument, unwritable
from agent_adapter.core.schema.json_reading import holding_secrets, json_validator, written_by_type
from agent_adapter.core.schema.mending import has_aliases, mended

Validate = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Takes the tool's name (for errors) and the arguments."""

_SCALARS = (str, int, bool, float, type(None))
"""Types whose values `json_ready` returns unchanged."""

_MASK = ord("*")
"""The beginning of a dumped Pydantic secret."""


class ArgumentCheck(Protocol):
    """A tool's arguments, compiled: checked, written, and described by a schema.

    `may_be_slow` is true if `is_large` must be called before a check on an event loop.
    """

    schema: Mapping[str, Any]
    may_be_slow: bool

    @property
    def validate(self) -> Validate:
        """The values by parameter name, or `ToolArgsInvalid` with one line per field."""
        ...

    def is_large(self, args: Any) -> bool:
        """Whether checking `args` takes so long that it must not run on the event loop."""
        ...

    def public(self, values: Mapping[str, Any], secret: SecretWriter = in_clear) -> dict[str, Any]:
        """`values` under the names that the schema uses, as JSON-able Python."""
        ...

    def public_name(self, parameter: str) -> str:
        """The name that the schema uses for `parameter`."""
        ...

    def serialised(self, values: Mapping[str, Any]) -> bytes:
        """`values` as JSON by their types' own serialisers."""
        ...


def dump(check: ArgumentCheck, values: Mapping[str, Any]) -> bytes:
    """Validated `values` as JSON under the schema's names; secrets are written in clear."""
    try:
        return to_json(check.public(values), bytes_mode="base64")
    except PydanticSerializationError:
        return check.serialised(values)


class ModelCheck:
    """Arguments checked by a Pydantic model, as strict JSON.

    `fields` maps the model's fields to parameter names, `secrets` are parameters whose values are
    never quoted, `closed` says that NaN and objects can only meet a type that refuses them.
    """

    __slots__ = (
        "_aliased",
        "_by_type",
        "_fields",
        "_guarded",
        "_known",
        "_model",
        "_plain",
        "_public",
        "_renamed",
        "_secrets",
        "_validate_json",
        "may_be_slow",
        "schema",
        "validate",
    )

    def __init__(
        self,
        model: type[BaseModel],
        schema: Mapping[str, Any],
        *,
        fields: Mapping[str, str],
        secrets: frozenset[str],
        plain: bool,
        closed: bool,
    ) -> None:
        self.schema = schema
        self._model = model
        self._fields = dict(fields)
        self._validate_json: Callable[..., Any] = json_validator(model).validate_json
        self._renamed = {field: name for field, name in fields.items() if field != name}
        self._public = {fields[field]: _alias(model, field) for field in fields}
        self._known = frozenset(schema.get("properties", {}))
        self._secrets = frozenset(self._public[name] for name in secrets)
        inside: frozenset[str] = frozenset() if plain else holding_secrets(model)
        self._guarded = frozenset(self._public[fields[field]] for field in inside)
        self.may_be_slow = False
        self._plain = plain
        own: frozenset[str] = frozenset() if plain else written_by_type(model)
        self._by_type = frozenset(fields[field] for field in own)
        self._aliased = has_aliases(schema)
        quick = closed and not self._renamed and not self._aliased
        self.validate: Validate = self._quickly() if quick else self._thoroughly

    def _quickly(self) -> Validate:
        """The check for types that have no code of their own: whatever fails is looked at again."""
        known, validate_json, thoroughly = self._known, self._validate_json, self._thoroughly

        def validate(tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
            try:
                if type(args) is dict and known.issuperset(args):
                    data = to_json(args)
                    if _MASK not in data:
                        values: dict[str, Any] = validate_json(data, strict=True).__dict__
                        return values
            except Exception:  # noqa: S110  # looked at below, where an error has no context
                pass
            return thoroughly(tool, args)

        return validate

    def _thoroughly(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        if self._aliased:  # a nested object that ignores unknown names would lose an alias
            args = mended(self.schema, args)
        values, failure = self._tried(args)
        if values is None:
            meant = self._meant(args)
            if meant is not args:
                args = meant
                values, failure = self._tried(args)
        if values is None:
            raise ToolArgsInvalid(tool, capped(self._problems(args, failure)))
        return self._by_parameter(values) if self._renamed else values

    def _tried(self, args: Any) -> tuple[dict[str, Any] | None, Exception]:
        """The model's fields, or the problems."""
        try:
            if type(args) is not dict:
                args = _as_dict(args)
            if self._known.issuperset(args):
                return self._checked(args), TypeError()
            return None, TypeError("unknown argument")
        except Exception as exc:  # a validator of the tool's author may raise anything
            return None, exc

    def _meant(self, args: Any) -> Any:
        """Refused arguments, mended as a model may have meant them."""
        try:
            return mended(self.schema, args)
        except Exception:  # a cycle, or a mapping of the caller
            return args

    def is_large(self, args: Any) -> bool:
        """Never: Pydantic checks a million values in the time that this would take to count."""
        return False

    def public(self, values: Mapping[str, Any], secret: SecretWriter = in_clear) -> dict[str, Any]:
        """`values` under the names that the schema uses, as JSON-able Python."""
        names = self._public
        own = {name: value for name, value in values.items() if name in self._by_type}
        written = from_json(self.serialised(own)) if own else {}
        for name, value in values.items():
            if name not in own:
                plain = type(value) in _SCALARS
                written[names.get(name, name)] = value if plain else json_ready(value, secret)
        return written

    def public_name(self, parameter: str) -> str:
        """The name that the schema uses for `parameter`."""
        return self._public.get(parameter, parameter)

    def serialised(self, values: Mapping[str, Any]) -> bytes:
        """`values` as JSON by the serialisers of their types, for types that only these know."""
        fields = {field: values[name] for field, name in self._fields.items() if name in values}
        instance = self._model.model_construct(_fields_set=set(fields), **fields)
        dumped = instance.model_dump_json(by_alias=True, round_trip=True, exclude_unset=True)
        return dumped.encode()

    def _checked(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The model's fields, with Python objects written out whole and NaN refused everywhere."""
        data = to_json(args, bytes_mode="base64")
        if (not self._plain or _MASK in data) and needs_rewriting(args):
            data = to_json(json_ready(args), bytes_mode="base64")
        values: dict[str, Any] = self._validate_json(data, strict=True).__dict__
        if b"NaN" in data or b"Infinity" in data:
            json.loads(data, parse_constant=_refuse_constant)
        return values

    def _by_parameter(self, values: dict[str, Any]) -> dict[str, Any]:
        return {self._renamed.get(field, field): value for field, value in values.items()}

    def _problems(self, args: Any, failure: Exception) -> list[str]:
        if not isinstance(args, dict):
            return [f"arguments: got {type(args).__name__} (expected an object with string keys)"]
        unknown = [key for key in args if key not in self._known]
        problems = [unknown_argument(key, self._known) for key in unknown]
        if unknown:
            failure = self._failure({key: args[key] for key in args if key in self._known})
        if isinstance(failure, ValidationError):
            problems += field_problems(failure, args, self.schema, self._secrets, self._guarded)
        elif not problems:
            problems = [unwritable(failure)]
        return problems

    def _failure(self, args: Mapping[str, Any]) -> Exception:
        """The problems of the known arguments, besides unknown ones."""
        try:
            self._checked(args)
        except Exception as exc:
            return exc
        return ValueError("only unknown arguments")


def _alias(model: type[BaseModel], field: str) -> str:
    info = model.model_fields[field]
    for alias in (info.validation_alias, info.alias):
        if isinstance(alias, str):
            return alias
    return field


def _as_dict(args: Any) -> dict[str, Any]:
    if not isinstance(args, Mapping):
        raise TypeError("arguments are not an object")
    return dict(args)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON has")
