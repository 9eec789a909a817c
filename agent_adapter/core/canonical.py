"""`canon:1`, the encoding of digests, and keyed digests.

JSON values are written as in RFC 8785. Everything else becomes a one-key object whose
key begins with `$`, so that no two different values share an encoding: 1, 1.0, true and "1" differ,
so do a Decimal and its text, a set and a list. Secrets enter as a keyed hash.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import enum
import hashlib
import hmac
import ipaddress
import math
import re
import uuid
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath
from typing import Any, cast
from zoneinfo import ZoneInfo

import rfc8785
from pydantic import AnyUrl, BaseModel, Secret, SecretBytes, SecretStr, TypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from agent_adapter.core.content import Artifact, Audio, File, Image, Json, Media, Text

VERSION = "canon:1"

_LARGEST_INT = 2**53 - 1


class SecretValue:
    """A value that enters a digest by keyed hash and is never written out."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "SecretValue(***)"


def keyed_hash(key: bytes, data: bytes) -> str:
    """HMAC-SHA-256 of `data` in hexadecimal."""
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def canon(value: Any, key: bytes = b"") -> bytes:
    """`value` in `canon:1`; `key` hashes the secrets in it.

    Raises `ValueError` for NaN and infinity, `TypeError` for a type that has no encoding.
    """
    plain = tagged(value, key)
    try:
        # For plain values in this order `to_json` writes the same bytes, in a tenth of the time.
        return to_json(_ordered(plain))
    except (_KeyIsNotAscii, PydanticSerializationError, RecursionError, ValueError):
        pass  # no error has this one as its context
    try:
        return rfc8785.dumps(plain)
    except (UnicodeEncodeError, rfc8785.CanonicalizationError):
        return rfc8785.dumps(_without_surrogates(plain))


def digest(value: Any, key: bytes = b"") -> str:
    """SHA-256 over the version and `canon(value)`, in hexadecimal."""
    return hashlib.sha256(b"canon:1\x00" + canon(value, key)).hexdigest()


def tagged(value: Any, key: bytes = b"") -> Any:
    """`value` as JSON values; types that JSON lacks are tagged."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if -_LARGEST_INT <= value <= _LARGEST_INT else {"$int": str(value)}
    if kind is dict:
        return _tagged_dict(value, key)
    if kind is list or kind is tuple:
        return [tagged(item, key) for item in value]
    if kind is float:
        return _tagged_float(value)
    return _tagged_object(value, key)


def untagged(value: Any) -> Any:
    """The value that `tagged` wrote; objects of user classes come back as their fields."""
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (name, body), *_ = value.items()
        if name in _READERS:
            return _READERS[name](body)
    return {name: untagged(item) for name, item in value.items()}


def _tagged_dict(value: Mapping[Any, Any], key: bytes) -> Any:
    if all(type(name) is str and not name.startswith("$") for name in value):
        return {name: tagged(item, key) for name, item in value.items()}
    pairs = [[tagged(name, key), tagged(item, key)] for name, item in value.items()]
    return {"$dict": sorted(pairs, key=lambda pair: canon(pair[0]))}


def _tagged_float(value: float) -> dict[str, str]:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no canonical form; NaN and infinity are refused")
    return {"$float": repr(value)}


# One branch for each kind of value: their order matters, so they stay together.
def _tagged_object(value: Any, key: bytes) -> Any:  # noqa: C901, PLR0911
    if isinstance(value, (SecretStr, SecretBytes, Secret)):
        return _masked(value.get_secret_value(), key)
    if isinstance(value, SecretValue):
        return _masked(value.value, key)
    if isinstance(value, (Text, Json, Media, Artifact)):
        names = [field.name for field in dataclasses.fields(value)]
        return content_tag(value, {name: tagged(getattr(value, name), key) for name in names})
    if isinstance(value, enum.Enum):
        return {"$enum": [type(value).__qualname__, tagged(value.value, key)]}
    if isinstance(value, BaseModel):
        fields = dict(value.__dict__) | (value.__pydantic_extra__ or {})
        return {"$object": [type(value).__qualname__, _tagged_dict(fields, key)]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"$object": [type(value).__qualname__, _tagged_dict(fields, key)]}
    if isinstance(value, deque):
        return {"$deque": [[tagged(item, key) for item in value], value.maxlen]}
    if isinstance(value, (set, frozenset)):
        return {"$set": sorted((tagged(item, key) for item in value), key=canon)}
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    for base, plain in _BASES:
        if isinstance(value, base):
            return tagged(plain(value), key)
    return {"$typed": [type(value).__qualname__, _by_type(value)]}


def _by_type(value: Any) -> Any:
    """What Pydantic writes for a value of a type that has a schema of its own."""
    kind = type(value)
    try:
        written = _adapter(cast(Hashable, kind)).dump_python(
            value, mode="json", round_trip=True, warnings="error"
        )
        return tagged(written)
    except Exception as exc:
        raise TypeError(f"{kind.__qualname__} has no canonical form") from exc


@lru_cache(maxsize=256)
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def _masked(value: Any, key: bytes) -> dict[str, str]:
    return {"$secret": keyed_hash(key, canon(value))}


class _KeyIsNotAscii(Exception):
    """Keys are ordered by UTF-16 units, which for these are not Python's own order."""


def _ordered(value: Any) -> Any:
    """`value` with the keys of every object in order."""
    if type(value) is dict:
        names = sorted(value)
        if not "".join(names).isascii():
            raise _KeyIsNotAscii
        return {name: _ordered(value[name]) for name in names}
    return [_ordered(item) for item in value] if type(value) is list else value


def _without_surrogates(value: Any) -> Any:
    if type(value) is dict:
        pairs = {_plain_text(name): _without_surrogates(item) for name, item in value.items()}
        return pairs
    if type(value) is list:
        return [_without_surrogates(item) for item in value]
    if type(value) is str and any("\ud800" <= char <= "\udfff" for char in value):
        return {"$utf16": value.encode("utf-16-be", "surrogatepass").hex()}
    return value


def _plain_text(name: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in name):
        return "$utf16:" + name.encode("utf-16-be", "surrogatepass").hex()
    return name


def _b64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (dt.datetime, lambda v: {"$datetime": v.isoformat()}),
    (dt.date, lambda v: {"$date": v.isoformat()}),
    (dt.time, lambda v: {"$time": v.isoformat()}),
    (dt.timedelta, lambda v: {"$timedelta": [v.days, v.seconds, v.microseconds]}),
    (Decimal, lambda v: _finite_decimal(v)),
    (Fraction, lambda v: {"$fraction": str(v)}),
    ((bytes, bytearray, memoryview), lambda v: {"$bytes": _b64(bytes(v))}),
    (uuid.UUID, lambda v: {"$uuid": str(v)}),
    (PurePath, lambda v: {"$path": str(v)}),
    (AnyUrl, lambda v: {"$url": str(v)}),
    (ZoneInfo, lambda v: {"$zone": str(v)}),
    (re.Pattern, lambda v: {"$pattern": [tagged(v.pattern), int(v.flags)]}),
    (complex, lambda v: {"$complex": [_tagged_float(v.real), _tagged_float(v.imag)]}),
    (
        (
            ipaddress.IPv4Address,
            ipaddress.IPv6Address,
            ipaddress.IPv4Network,
            ipaddress.IPv6Network,
            ipaddress.IPv4Interface,
            ipaddress.IPv6Interface,
        ),
        lambda v: {"$ip": [type(v).__name__, str(v)]},
    ),
)

_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str),
    (int, int),
    (float, float),
    (Mapping, dict),
    (list, list),
    (tuple, list),
)


def _as_key(value: Any) -> Any:
    """A list in the place of a key or set member as the tuple that it was."""
    return tuple(map(_as_key, value)) if isinstance(value, list) else value


def _finite_decimal(value: Decimal) -> dict[str, str]:
    if not value.is_finite():
        raise ValueError(f"{value!r} has no canonical form; NaN and infinity are refused")
    return {"$decimal": str(value)}


def content_tag(part: Text | Json | Media | Artifact, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a result with its tagged `fields`; it is read back as the same part."""
    return {"$content": [type(part).__name__, fields]}


_CONTENT: dict[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (Text, Json, Image, Audio, File, Artifact)
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "$int": int,
    "$float": float,
    "$dict": lambda body: {_as_key(untagged(name)): untagged(item) for name, item in body},
    "$set": lambda body: {_as_key(untagged(item)) for item in body},
    "$datetime": dt.datetime.fromisoformat,
    "$date": dt.date.fromisoformat,
    "$time": dt.time.fromisoformat,
    "$timedelta": lambda body: dt.timedelta(days=body[0], seconds=body[1], microseconds=body[2]),
    "$decimal": Decimal,
    "$fraction": Fraction,
    "$bytes": base64.b64decode,
    "$uuid": uuid.UUID,
    "$path": lambda body: PurePath(body),
    "$url": AnyUrl,
    "$enum": lambda body: untagged(body[1]),
    "$content": lambda body: _CONTENT[body[0]](**untagged(body[1])),
    "$object": lambda body: untagged(body[1]),
    "$typed": lambda body: untagged(body[1]),
    "$deque": lambda body: deque(map(untagged, body[0]), body[1]),
    "$zone": ZoneInfo,
    "$utf16": lambda body: bytes.fromhex(body).decode("utf-16-be", "surrogatepass"),
    "$complex": lambda body: complex(untagged(body[0]), untagged(body[1])),
}
