"""Records as JSON objects: written field by field, read with every field validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agent_adapter.core.errors import ProtocolError

_MOST = 10

STRICT = ConfigDict(extra="forbid")
"""Set as a record's `__pydantic_config__`: unknown fields are refused."""

T = TypeVar("T")


def record_to_dict(record: Any) -> dict[str, Any]:
    """The fields of a record as JSON values, copied, nested records included."""
    return {item.name: _plain(getattr(record, item.name)) for item in fields(record)}


def record_from_dict(cls: type[T], data: Mapping[str, Any]) -> T:
    """The record that `record_to_dict` wrote; `ProtocolError` names each invalid field."""
    if not isinstance(data, Mapping):
        raise ProtocolError(f"a {cls.__name__} is a JSON object, not {type(data).__name__}")
    try:
        return cast(T, _reader(cls).validate_python(dict(data)))
    except ValidationError as exc:
        raise ProtocolError(f"not a {cls.__name__}: {problems(exc, cls.__name__)}") from None


def problems(error: ValidationError, whole: str) -> str:
    """The first ten problems of untrusted data by field; `whole` names the data itself.

    No value is quoted: it may be a secret or a megabyte long.
    """
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        f"{'.'.join(map(str, item['loc'])) or whole:.200}: {item['msg']:.300}"
        for item in found[:_MOST]
    ]
    return "; ".join([*lines, *([f"and {len(found) - _MOST} more"] if len(found) > _MOST else [])])


def _reader(cls: type[Any]) -> TypeAdapter[Any]:
    if cls not in _readers:
        _readers[cls] = TypeAdapter(cls)
    return _readers[cls]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return record_to_dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


_readers: dict[type[Any], TypeAdapter[Any]] = {}
