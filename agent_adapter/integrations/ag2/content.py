"""The parts of a result as AG2's inputs, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_adapter.core.content import Content, Json, Media, Text, left_out, media_of
from agent_adapter.core.results import plain_result

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF = "application/pdf"


def inputs_of(parts: Sequence[Content]) -> list[Any]:
    """One input for each part; a line where AG2's clients would refuse the whole turn."""
    return [_input_of(part) for part in parts]


def _input_of(part: Content) -> Any:
    from ag2.events import BinaryInput, DataInput, TextInput, UrlInput
    from ag2.events.input_events import BinaryType
    from pydantic_core import from_json

    if isinstance(part, Text):
        return TextInput(part.text)
    if isinstance(part, Json):
        return DataInput(from_json(plain_result(part.value)))
    is_image = part.media_type in _IMAGES
    if not is_image and part.media_type != _PDF:
        return TextInput(left_out(part))
    kind = BinaryType.IMAGE if is_image else BinaryType.DOCUMENT
    if part.data is None:
        return UrlInput(part.uri, kind=kind)
    named = {"filename": part.name} if part.name else {}
    return BinaryInput(part.data, media_type=part.media_type, kind=kind, vendor_metadata=named)


def part_of(native: Any) -> Media | None:
    """An input that holds bytes or an address as a part; `None` for any other."""
    from ag2.events import BinaryInput, UrlInput

    if isinstance(native, BinaryInput):
        name = native.vendor_metadata.get("filename")
        media_type = getattr(native.media_type, "value", native.media_type)
        return media_of(media_type, native.data, name=name if isinstance(name, str) else None)
    if isinstance(native, UrlInput):
        return media_of(None, uri=native.url, usual=native.kind.value)
    return None
