"""The parts of a result as OpenAI's APIs take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_adapter.core.content import Audio, Content, Image, Media, attached, left_out
from agent_adapter.integrations.part_text import part_text, reachable, text_of

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_PDF = "application/pdf"


def responses_output(parts: Sequence[Content]) -> list[dict[str, Any]]:
    """The `output` of a function call: text, images and files; a line for anything else."""
    return [_response_part(part) for part in parts]


def chat_text(parts: Sequence[Content]) -> str:
    """The text of a tool message, with a line in place of each media part.

    A tool message holds text only: what a user's message can hold follows in one.
    """
    return text_of(parts, lambda media: _chat_part(media) is not None)


def chat_media(parts: Sequence[Content]) -> list[dict[str, Any]]:
    """The media that follow in a message of the user, each after its line."""
    found: list[dict[str, Any]] = []
    for part in parts:
        media = _chat_part(part) if isinstance(part, Media) else None
        if media is not None and isinstance(part, Media):
            found += [{"type": "text", "text": attached(part)}, media]
    return found


def _chat_part(media: Media) -> dict[str, Any] | None:
    if isinstance(media, Image) and media.media_type in _IMAGES and reachable(media):
        return {"type": "image_url", "image_url": {"url": media.url}}
    if isinstance(media, Audio) and media.media_type in _SOUNDS and media.data is not None:
        sound = {"data": media.base64, "format": _SOUNDS[media.media_type]}
        return {"type": "input_audio", "input_audio": sound}
    if media.media_type == _PDF and media.data is not None:
        name = media.name or "file.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": media.url}}
    return None


def _response_part(part: Content) -> dict[str, Any]:
    if not isinstance(part, Media):
        return {"type": "input_text", "text": part_text(part)}
    if isinstance(part, Image) and part.media_type in _IMAGES and reachable(part):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    if part.media_type == _PDF and part.data is not None:
        name = part.name or "file.pdf"
        return {"type": "input_file", "filename": name, "file_data": part.url}
    if part.kind == "file" and part.uri is not None and reachable(part):
        return {"type": "input_file", "file_url": part.uri}
    return {"type": "input_text", "text": left_out(part)}
