"""What a speaker sees, by a view of this library or one that was written for AG2."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.views import ViewMessage, text_of_parts


@dataclass(frozen=True, slots=True)
class TextPart:
    """One text of a message, as views written for AG2 read it."""

    content: str


class Parts(list[Any]):
    """The parts of one message; as a string, its text."""

    def __str__(self) -> str:
        return text_of_parts(self) or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A view applied for one participant of one channel.

    `window` is how many of the newest turns the view needs; `None` is one that reads the log.
    """

    policy: Any
    window: int | None
    participant_id: str
    metadata: ChannelMetadata
    adapter: ChannelAdapter
    name_for: Callable[[str], str]

    async def of(self, envelopes: Sequence[Envelope], earlier: int = 0) -> list[ViewMessage]:
        """The messages of `envelopes`; `earlier` ones were not read."""
        project = self.policy.project
        plain, takes = _form(getattr(project, "__func__", project))
        more: dict[str, Any] = {"channel": self.metadata, "earlier": earlier}
        if takes is not None:
            more = {name: value for name, value in more.items() if name in takes}
        plain = plain and self.window is not None
        seen = project(
            list(envelopes),
            participant_id=self.participant_id,
            render_envelope=self.adapter.render_envelope if plain else self._parts,
            name_for=self.name_for,
            **more,
        )
        if inspect.isawaitable(seen):
            seen = await seen
        return [item if isinstance(item, ViewMessage) else self._message(item) for item in seen]

    def _parts(self, envelope: Envelope) -> Parts | None:
        """The envelope's text as AG2 hands it to views."""
        text = self.adapter.render_envelope(envelope)
        if not text:
            return None
        # AG2's own part where the program uses AG2: its events take nothing else.
        events = sys.modules.get("ag2.events")
        return Parts([TextPart(text) if events is None else events.TextInput(text)])

    def _message(self, item: Any) -> ViewMessage:
        """The message for a text, or for an event of AG2."""
        if isinstance(item, str):
            return ViewMessage(text=item)
        if isinstance(getattr(item, "summary", None), str):
            return ViewMessage(text=item.summary, summary=True)
        parts = getattr(item, "parts", None)
        if parts is not None:
            return ViewMessage(text=text_of_parts(list(parts)) or "")
        if isinstance(getattr(item, "content", None), str):
            return ViewMessage(
                text=item.content,
                sender_id=self.participant_id,
                sender_name=self.name_for(self.participant_id),
                own=True,
            )
        raise NetworkError(
            f"the view {type(self.policy).__name__} returned a {type(item).__name__}; return "
            "ViewMessage objects, texts, or AG2's events"
        )


@lru_cache(maxsize=256)
def _form(function: Callable[..., Any]) -> tuple[bool, frozenset[str] | None]:
    """Whether `project` is not async, and its parameters; `None` if it takes any."""
    try:
        parameters = tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = ()
    kinds = {item.kind for item in parameters}
    names = frozenset(item.name for item in parameters)
    names_or_any = None if inspect.Parameter.VAR_KEYWORD in kinds else names
    return not inspect.iscoroutinefunction(function), names_or_any
