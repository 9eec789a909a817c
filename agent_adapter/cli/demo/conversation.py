"""The agents of the demo, as its scenario sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMessage:
    """One line of a conversation: a tool's result, or with `tool=None` the agent's answer."""

    tool: str | None
    shown: str


class DemoAgent(Protocol):
    """One agent of the demo, in any framework."""

    framework: str

    async def start(self) -> list[DemoMessage]:
        """Run until a call waits for approval."""
        ...

    async def resume(self) -> list[DemoMessage]:
        """Continue after the decision."""
        ...
