"""The messages of a view as AG2's events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ag2.events import Input

Rendered = Any
"""What a channel type gives for an envelope: one message for a model, or a sequence of parts."""


def ensure_parts(content: Rendered | None) -> list[Input]:
    """The input parts of `content`: one for a single message, one per item of a sequence."""
    from ag2.events import Input

    if content is None:
        return []
    many = isinstance(content, Sequence) and not isinstance(content, (str, bytes, bytearray))
    return [Input.ensure_input(item) for item in (content if many else [content])]


def view_events(messages: Iterable[Any], parts: Mapping[str, Rendered], count: int) -> list[Any]:
    """The messages of a view as AG2's events: own ones, those of others, and the summary.

    `parts` are what was rendered, by envelope; `count` is how many messages the summary stands for.
    """
    from ag2.compact import CompactionSummary
    from ag2.events import ModelMessage, ModelRequest, TextInput

    events: list[Any] = []
    for item in messages:
        if item.summary:
            events.append(CompactionSummary(summary=item.text, event_count=count))
        elif item.own:
            events.append(ModelMessage(item.text))
        else:
            # Parts beside the text stay; the text is that of the view, with its label.
            rendered = ensure_parts(parts.get(item.envelope_id)) if item.envelope_id else []
            others = [part for part in rendered if not isinstance(part, TextInput)]
            events.append(ModelRequest([TextInput(item.text), *others]))
    return events
