"""The parts of a result as Agno's `ToolResult` with media, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_adapter.core.content import Content, Media, Text, media_of
from agent_adapter.integrations.part_text import text_of

if TYPE_CHECKING:
    from agno.tools.function import ToolResult


def tool_result(parts: Sequence[Content]) -> ToolResult:
    """The text, and beside it the media, which Agno hands to its model after the result."""
    from agno.tools.function import ToolResult

    media = [part for part in parts if isinstance(part, Media) and _fits(part)]
    found: dict[str, list[Any]] = {"images": [], "audios": [], "files": []}
    for part in media:
        found[f"{part.kind}s"].append(_native(part))
    kept: dict[str, Any] = {name: items for name, items in found.items() if items}
    return ToolResult(content=text_of(parts, _fits), **kept)


def value_of(result: ToolResult) -> Any:
    """The text alone, or the text and the media of a native result."""
    native = [*(result.images or ()), *(result.audios or ()), *(result.files or ())]
    media = [part for item in native if (part := _part_of(item)) is not None]
    videos = [Text(f"[left out: {len(result.videos)} videos]")] if result.videos else []
    return [Text(result.content), *media, *videos] if media or videos else result.content


def _fits(part: Media) -> bool:
    from agno.media import File

    return part.kind != "file" or part.media_type in File.valid_mime_types()


def _native(part: Media) -> Any:
    from agno.media import Audio, File, Image

    where: dict[str, Any] = {"url": part.uri} if part.data is None else {"content": part.data}
    if part.kind == "file":
        return File(mime_type=part.media_type, filename=part.name, **where)
    kind = Image if part.kind == "image" else Audio
    ending = part.media_type.partition("/")[2].removeprefix("x-")
    return kind(mime_type=part.media_type, format=ending, **where)


def _part_of(item: Any) -> Media | None:
    """Agno's media by their bytes or address; a local path is not followed."""
    kind = type(item).__name__.lower()
    stated = item.mime_type or (f"{kind}/{item.format}" if item.format and kind != "file" else None)
    try:
        data = item.content if isinstance(item.content, bytes) else None
        name = getattr(item, "filename", None)
        return media_of(stated, data, None if data is not None else item.url, usual=kind, name=name)
    except ValueError:
        return None
