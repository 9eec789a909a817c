"""What the story's parts hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Customer", "Said"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One line of a conversation: what a tool's call gave the model, or what the agent answered."""

    tool: str | None
    shown: str


class Customer(Protocol):
    """One agent of the story, whatever its framework."""

    framework: str

    async def start(self) -> list[Said]:
        """What happens until a person is needed."""
        ...

    async def go_on(self) -> list[Said]:
        """What happens after the person decided."""
        ...
