"""What the story's parts hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["DemoAgent", "DemoMessage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMessage:
    """One line of a conversation: what a tool's call gave the model, or what the agent answered."""

    tool: str | None
    shown: str


class DemoAgent(Protocol):
    """One agent of the story, whatever its framework."""

    framework: str

    async def start(self) -> list[DemoMessage]:
        """What happens until a person is needed."""
        ...

    async def go_on(self) -> list[DemoMessage]:
        """What happens after the person decided."""
        ...
