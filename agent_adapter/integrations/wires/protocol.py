"""What the loop needs of a provider's client: ask once, read the calls, write answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.core.identity import Position
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.quarantine import OnError
from agent_adapter.integrations.wires.calls import Answer, Mended, ProviderCall
from agent_adapter.integrations.wires.finish import WHOLE, Stopped

Piece = Callable[[str], Awaitable[None]]
"""Told of each piece of text as it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a model said once: `said` are the messages to keep, `calls` what it wants done.

    `place` tells the response from others, `None` where it has no id. `stopped` is why it ended.
    `pause` among its reasons says that the provider paused by itself and wants to be asked again;
    `calls` is then empty.
    """

    said: list[Any]
    calls: list[ProviderCall]
    text: str
    response: Any
    stopped: Stopped = WHOLE
    place: Position | None = None


class Wire(Protocol):
    """One provider's API for the loop."""

    @property
    def mend(self) -> Mended | None:
        """How arguments are read, where the provider sends more than was meant."""

    def tools(self, specs: Iterable[ToolSpec], on_error: OnError = "skip") -> Any:
        """The tools as a request takes them; one that it cannot take is left out, or raises."""

    def opening(self, prompt: str) -> list[Any]:
        """The messages of a conversation that begins with `prompt`."""

    async def ask(self, request: Mapping[str, Any], *, piece: Piece | None) -> Turn:
        """One answer of the model; streamed where `piece` is given."""

    def answers(self, answers: Sequence[Answer]) -> list[Any]:
        """The messages that answer calls."""

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The calls at the end of `messages` that nothing answers."""
