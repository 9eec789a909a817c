"""The parts of a result as MCP's content blocks, both ways."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_adapter.core.content import Audio, Content, File, Image, Json, Media, Text, media_of
from agent_adapter.core.errors import ToolFailed
from agent_adapter.integrations.part_text import part_text

_LONGEST_ERROR = 4000


def blocks_of(parts: Sequence[Content]) -> list[Any]:
    """Content blocks of the SDK's types; a part that is only an address becomes a link."""
    return [_block_of(part) for part in parts]


def _block_of(part: Content) -> Any:
    import mcp_types as types

    if not isinstance(part, Media):
        return types.TextContent(type="text", text=part_text(part))
    if part.uri is not None:
        name = part.name or part.uri.rstrip("/").rpartition("/")[2] or part.kind
        return types.ResourceLink(
            type="resource_link", name=name, uri=part.uri, mime_type=part.media_type
        )
    if isinstance(part, Image):
        return types.ImageContent(type="image", data=part.base64, mime_type=part.media_type)
    if isinstance(part, Audio):
        return types.AudioContent(type="audio", data=part.base64, mime_type=part.media_type)
    blob = types.BlobResourceContents(
        uri=f"file:///{part.name or part.digest}", mime_type=part.media_type, blob=part.base64
    )
    return types.EmbeddedResource(type="resource", resource=blob)


def value_of(result: Any) -> Any:
    """The value in a result that a server sent: its data, its text, or all of its parts.

    Images, audio, files, links, and text that says more stay beside the data. Raises `ToolFailed`
    with the server's reason for an error result: a server's word that its tool failed is no promise
    that nothing happened.
    """
    parts = [_part_of(block) for block in result.content]
    structured = result.structured_content
    if result.is_error:
        raise ToolFailed(_reason(parts, structured)[:_LONGEST_ERROR])
    if structured is None:
        only_text = len(parts) == 1 and isinstance(parts[0], Text)
        return parts[0].text if only_text and isinstance(parts[0], Text) else parts
    data = _unwrapped(structured, getattr(result, "meta", None))
    # By the protocol, text says the data again for clients that read none; other text is kept.
    said = _said_again([b.text for b in result.content if b.type == "text"], structured)
    blocks = zip(result.content, parts, strict=True)
    beside = [part for b, part in blocks if b.type != "text" or b.text not in said]
    return [Json(data), *beside] if beside else data


def _said_again(texts: list[str], structured: Any) -> set[str]:
    """The texts that only say the data again, whole or item by item."""
    values = [structured]
    if isinstance(structured, Mapping) and len(structured) == 1:
        values += structured.values()  # servers wrap what is no object
    for value in values:
        by_item = isinstance(value, list) and len(value) == len(texts)
        if by_item and all(map(_says, texts, value)):
            return set(texts)
    return {text for text in texts if any(_says(text, value) for value in values)}


def _says(text: str, value: Any) -> bool:
    """Whether the text is the value, as JSON or as it is."""
    if text == value:
        return True
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return text == str(value)


def _reason(parts: Iterable[Content], structured: Any) -> str:
    text = "\n".join(part.text for part in parts if isinstance(part, Text) and part.text.strip())
    if structured is not None and not _says(text, structured):
        data = json.dumps(structured, ensure_ascii=False, default=str)
        text = f"{text}\n{data}" if text else data
    return text or "the server says that the tool failed"


def _unwrapped(structured: Any, meta: Any) -> Any:
    mark = (meta or {}).get("fastmcp")
    wrapped = isinstance(mark, Mapping) and mark.get("wrap_result") is True
    if wrapped and isinstance(structured, Mapping) and "result" in structured:
        return structured["result"]
    return structured


def _part_of(block: Any) -> Content:
    kind = block.type
    if kind == "text":
        return Text(block.text)
    if kind in ("image", "audio"):
        made = Image if kind == "image" else Audio
        return _decoded(block.data, block.mime_type, made.kind)
    if kind == "resource_link":
        return File(uri=str(block.uri), media_type=_typed(block.mime_type), name=block.name)
    if kind == "resource":
        inside = block.resource
        text = getattr(inside, "text", None)
        if text is not None:
            return Text(text)
        name = str(inside.uri).rstrip("/").rpartition("/")[2] or None
        return _decoded(inside.blob, inside.mime_type, "file", name)
    return Json(block.model_dump(mode="json", by_alias=True, exclude_none=True))


def _decoded(text: str, media_type: str | None, kind: str, name: str | None = None) -> Content:
    try:
        return media_of(media_type, base64.b64decode(text, validate=True), name=name)
    except ValueError:
        return Text(f"[left out: {kind}, {media_type}: the server sent no valid base64]")


def _typed(media_type: str | None) -> str:
    return media_type if media_type and "/" in media_type else ""
