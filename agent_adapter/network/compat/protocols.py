"""Protocols and records that exist for code written against AG2's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.identity import Passport, Resume

EnvelopeRenderer = Callable[[Envelope], "Sequence[Any] | str | None"]
"""Returns the parts, or the text, of an envelope for a speaker; `None` leaves it out."""


def default_name_resolver(agent_id: str) -> str:
    """The id itself: for views that are used without a hub."""
    return agent_id


class NetworkClient(Protocol):
    """A participant as a hub sees it: an identity that envelopes are delivered to."""

    @property
    def agent_id(self) -> str:
        """The id that the hub gave it."""
        ...

    @property
    def passport(self) -> Passport:
        """Its identity record."""
        ...

    @property
    def resume(self) -> Resume:
        """Its résumé."""
        ...

    async def receive(self, envelope: Envelope) -> None:
        """Handle an envelope that the hub delivers."""
        ...

    async def disconnect(self) -> None:
        """Stop receiving; a second call does nothing."""
        ...
