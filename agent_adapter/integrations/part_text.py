"""What every target needs of the parts of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_adapter.core.content import Content, Json, Media, Text, attached, left_out
from agent_adapter.core.results import plain_result


def part_text(part: Text | Json) -> str:
    """A part that is text or data."""
    return part.text if isinstance(part, Text) else plain_result(part.value)


def reachable(media: Media) -> bool:
    """Whether a provider can be given the part: its bytes, or an address on the web."""
    return media.data is not None or (media.uri or "").startswith(("https://", "http://"))


def text_of(parts: Sequence[Content], shows: Callable[[Media], bool]) -> str:
    """The text beside media that are handed over apart, with a line for each of them.

    `shows` says which of them the target can be given; the others are left out.
    """
    return "\n".join(
        part_text(part)
        if not isinstance(part, Media)
        else (attached(part) if shows(part) else left_out(part))
        for part in parts
    )
