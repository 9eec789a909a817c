"""A result as the parts that a target shows: data, media and artifacts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from agent_adapter.core.content import (
    Artifact,
    Content,
    File,
    Json,
    Media,
    Text,
    attached,
    left_out,
    media_of,
    sniffed,
)

_SCALARS = (str, int, bool, float, type(None))
_DEEPEST = 50
_MOST_BYTES = 4096
"""Bytes of no known kind that are no longer than this are shown as base64, as JSON values are."""


def holds_content(value: Any) -> bool:
    """Whether `value` contains a part that is not written as JSON; never raises."""
    try:
        return _holds(value, 0)
    except Exception:  # an object of the tool's own whose attributes fail
        return False


def _holds(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _SCALARS or depth > _DEEPEST:
        return False
    if isinstance(value, (Text, Json, Media, Artifact)):
        return True
    if kind is bytes:
        return _media_in(value) is not None
    return any(type(item) not in _SCALARS and _holds(item, depth + 1) for item in _below(value))


def parts_of(value: Any) -> tuple[Content, ...]:
    """The parts of a result in order; empty if all of it is JSON.

    The items of a list are separate parts. Nested media follow the data that contained them, which
    has a note in their place.
    """
    if type(value) in _SCALARS or not holds_content(value):
        return ()
    found: list[Content] = []
    value = without_artifacts(value)
    for item in value if isinstance(value, (list, tuple)) else (value,):
        found += _parts_of_item(item)
    return tuple(found)


def artifact_of(value: Any) -> Any:
    """The artifact of a result; `None` if there is none."""
    found = value if isinstance(value, list) else [value]
    return next((item.value for item in found if isinstance(item, Artifact)), None)


def without_artifacts(value: Any) -> Any:
    """A result without its artifact."""
    if isinstance(value, list):
        return [item for item in value if not isinstance(item, Artifact)]
    return None if isinstance(value, Artifact) else value


def without_content(value: Any) -> Any:
    """`value` with a line in place of each part that JSON text cannot carry."""
    return _replaced(without_artifacts(value), lambda media: left_out(media), 0)


def content_facts(value: Any) -> list[dict[str, Any]]:
    """The ledger's facts about each media part: kind, media type, size and digest, or the URI."""
    found = []
    for part in parts_of(value):
        if isinstance(part, Media):
            known = {"size": part.size, "sha256": part.digest, "uri": part.uri, "name": part.name}
            told: dict[str, Any] = {n: fact for n, fact in known.items() if fact is not None}
            found.append({"kind": part.kind, "media_type": part.media_type} | told)
    return found


def _parts_of_item(item: Any) -> list[Content]:
    if isinstance(item, (Text, Media)):
        return [item]
    if isinstance(item, str):
        return [Text(item)]
    media = _media_in(item) if isinstance(item, bytes) else None
    if media is not None:
        return [media]
    inner: list[Content] = []

    def taken(part: Media) -> str:
        inner.append(part)
        return attached(part)

    data = _replaced(item, taken, 0)
    return [Json(data), *inner]


# One branch for each kind of value.
def _replaced(value: Any, line: Callable[[Media], str], depth: int) -> Any:  # noqa: PLR0911
    if type(value) in _SCALARS or depth > _DEEPEST:
        return value
    if isinstance(value, Media):
        return line(value)
    if isinstance(value, Text):
        return value.text
    if isinstance(value, Artifact):
        return None
    if isinstance(value, Json):
        return _replaced(value.value, line, depth + 1)
    if isinstance(value, bytes):
        media = _media_in(value)
        return value if media is None else line(media)
    if not holds_content(value):
        return value  # unchanged: JSON has its own form of models and dates
    if isinstance(value, Mapping):
        return {name: _replaced(item, line, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_replaced(item, line, depth + 1) for item in value]
    return {name: _replaced(item, line, depth + 1) for name, item in _fields(value).items()}


def _below(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    return _fields(value).values()


def _fields(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return dict(value.__dict__) | (value.__pydantic_extra__ or {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}


def _media_in(data: bytes) -> Media | None:
    """Unwrapped bytes: media by their first bytes, or too many to show."""
    media_type = sniffed(data)
    if media_type is None and len(data) <= _MOST_BYTES:
        return None
    return media_of(media_type or File.usual, data)
