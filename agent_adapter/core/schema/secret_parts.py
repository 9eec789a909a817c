"""Finds `Secret()` inside the types of a tool's parameters, and masks these parts of a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_adapter.core.canonical import SecretValue, tagged
from agent_adapter.core.inject import Secret
from agent_adapter.core.schema.sinks import MarkReader, Marks

_KIND = "secret"


def secret_marks(annotations: Mapping[str, Any]) -> dict[str, Marks]:
    """The marks of each parameter that is secret, whole or in part."""
    reader, found = _SecretReader(), {}
    for parameter, annotation in annotations.items():
        marks = Marks()
        reader.into(marks, annotation)
        if marks.holds_any():
            found[parameter] = marks
    return found


def is_whole(marks: Marks) -> bool:
    """Whether all of a value is secret; so it is where names in it are."""
    return bool(marks.kinds or marks.keys)


def masked_at(marks: Marks, value: Any, key: bytes) -> Any:
    """A JSON value with every secret part of it replaced by its keyed hash."""
    if is_whole(marks):
        return tagged(SecretValue(value), key)
    if isinstance(value, Mapping):
        return {
            name: _masked_by([*_known(marks, name), *marks.items], part, key)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_masked_by(marks.items, part, key) for part in value]
    return value


def _known(marks: Marks, name: str) -> list[Marks]:
    return [marks.fields[name]] if name in marks.fields else []


def _masked_by(several: Iterable[Marks], value: Any, key: bytes) -> Any:
    """Masked by each member of a union."""
    parts = list(several)
    if any(map(is_whole, parts)):
        return tagged(SecretValue(value), key)
    for marks in parts:
        value = masked_at(marks, value, key)
    return value


class _SecretReader(MarkReader):
    """Reads `Secret()` where its base reads `Sink(kind)`."""

    def note(self, marks: Marks, metadata: Iterable[Any]) -> None:
        for item in metadata:
            if item is Secret or isinstance(item, Secret):
                marks.kinds.add(_KIND)
            self.note(marks, getattr(item, "metadata", None) or ())
