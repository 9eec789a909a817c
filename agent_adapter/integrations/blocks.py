"""Content blocks of foreign tools, in the forms that OpenAI, Anthropic and LangChain use."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.content import Content, Json, Media, Text, media_of

_TEXTS = frozenset({"text", "input_text"})
_MEDIA = frozenset(
    {"image", "audio", "file", "document", "image_url", "input_image", "input_file", "input_audio"}
)
# A block has no other keys: data that happens to have a "type" of "file" stays data.
_KEYS = frozenset(
    {
        *("type", "id", "index", "extras", "detail", "cache_control", "citations", "title"),
        *("context", "source", "source_type", "base64", "data", "url", "image_url", "mime_type"),
        *("media_type", "filename", "name", "file_data", "file_url", "input_audio", "format"),
    }
)


def value_of_blocks(value: Any) -> Any:
    """A result of JSON values; a list with blocks of media in it as parts."""
    if isinstance(value, Mapping):
        return media_in(value) or value
    if not isinstance(value, list) or not any(media_in(item) for item in value):
        return value
    return [_part_of(item) for item in value]


def media_in(block: Any) -> Media | None:
    """The media that a block holds or points at; `None` for anything else."""
    if not isinstance(block, Mapping) or block.get("type") not in _MEDIA or set(block) - _KEYS:
        return None
    flat = dict(block)
    for inner in ("source", "image_url", "input_audio"):
        if isinstance(flat.get(inner), Mapping):
            flat |= flat.pop(inner)
    address = next(
        (flat[key] for key in ("image_url", "url", "file_url") if isinstance(flat.get(key), str)),
        None,
    )
    data = next((flat[key] for key in ("base64", "data", "file_data") if flat.get(key)), None)
    if isinstance(data, str) and data.startswith("data:"):
        address, data = data, None
    name = flat.get("filename") or flat.get("name")
    try:
        raw = base64.b64decode(data, validate=True) if isinstance(data, str) else None
        uri = address if raw is None else None
        stated = flat.get("mime_type") or flat.get("media_type")
        usual = str(block["type"]).removeprefix("input_").removesuffix("_url")
        named = name if isinstance(name, str) else None
        return media_of(stated, raw, uri, usual=usual, name=named)
    except ValueError:
        return None


def _part_of(item: Any) -> Content:
    media = media_in(item)
    if media is not None:
        return media
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, Mapping) and item.get("type") in _TEXTS:
        text = item.get("text")
        if isinstance(text, str):
            return Text(text)
    return Json(item)
