"""What the programs of the network's page need here: scripted models, and stores to run on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ag2.events import ToolCallEvent
from ag2.knowledge import MemoryKnowledgeStore
from ag2.testing import TestConfig

from agent_adapter.network import EV_CHANNEL_CLOSED, Envelope

STORES = ("ag2-memory", "sqlite-twice")
"""AG2's own store in memory; one SQLite file on which the program runs a second time."""

Program = Callable[[Any], Awaitable[Any]]


async def run_on(kind: str, folder: Path, program: Program) -> list[Any]:
    """What the program gives on a store of that kind, once per run."""
    if kind == "ag2-memory":
        return [await program(MemoryKnowledgeStore())]
    store = str(folder / "network.db")
    return [await program(store), await program(store)]


class Rounds(TestConfig):
    """A model that plays another script at each turn; the last one again and again."""

    __test__ = False

    def __init__(self, *rounds: Sequence[Any]) -> None:
        super().__init__()
        self._rounds = [tuple(turns) for turns in rounds]

    def create(self) -> Any:
        """The model of the next turn."""
        turns = self._rounds.pop(0) if len(self._rounds) > 1 else self._rounds[0]
        return TestConfig(*turns).create()


def call(name: str, arguments: str = "{}") -> ToolCallEvent:
    """The model calls a tool."""
    return ToolCallEvent(name, arguments=arguments)


def closed(envelope: Envelope) -> bool:
    """Whether the channel has ended with it."""
    return envelope.event_type == EV_CHANNEL_CLOSED


async def told(hub: Any, channel_id: str) -> list[tuple[str, str]]:
    """Who said what, in order: texts and the bodies of packets."""
    lines = []
    for envelope in await hub.read_wal(channel_id):
        text = envelope.event_data.get("text") or envelope.event_data.get("body")
        if text:
            lines.append((hub.name_for(envelope.sender_id), text))
    return lines
