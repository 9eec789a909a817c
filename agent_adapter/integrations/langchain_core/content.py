"""The parts of a result as LangChain's standard content blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_adapter.core.content import Content, Media
from agent_adapter.integrations.part_text import part_text


def blocks_of(parts: Sequence[Content]) -> list[dict[str, Any]]:
    """Standard blocks, which each of LangChain's models writes in its provider's form."""
    return [_block_of(part) for part in parts]


def _block_of(part: Content) -> dict[str, Any]:
    if not isinstance(part, Media):
        return {"type": "text", "text": part_text(part)}
    where = {"url": part.uri} if part.data is None else {"base64": part.base64}
    named = {"filename": part.name} if part.name else {}
    return {"type": part.kind, "mime_type": part.media_type, **where, **named}
