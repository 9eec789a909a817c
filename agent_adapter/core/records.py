"""Records as JSON objects: written field by field, read with every field validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent_adapter.core.errors import ProtocolError

_MOST = 10


class Record:
    """Base of frozen dataclasses whose JSON is stored or sent; unknown fields are refused."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values of their own, nested records included."""
        return _plain_fields(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record that `to_dict` wrote; `ProtocolError` names each invalid field."""
        if not isinstance(data, Mapping):
            raise ProtocolError(f"a {cls.__name__} is a JSON object, not {type(data).__name__}")
        try:
            read: Self = _reader(cls).validate_python(dict(data))
        except ValidationError as exc:
            raise ProtocolError(f"not a {cls.__name__}: {problems(exc, cls.__name__)}") from None
        return read


class StrictModel(BaseModel):
    """Base of models of foreign JSON objects: unknown fields are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


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


def _plain_fields(record: Any) -> dict[str, Any]:
    return {item.name: _plain(getattr(record, item.name)) for item in fields(record)}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


_readers: dict[type[Any], TypeAdapter[Any]] = {}
