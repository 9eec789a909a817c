"""What a scripted model says in a task, and what a framework made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter import Executor
from agent_adapter.core.tool import ToolSpec

__all__ = ["Call", "Played", "Player", "Script"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of one tool, by its name in the registry."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole task for a model: one call per turn, then `output`."""

    prompt: str
    calls: Sequence[Call]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the framework's own history says happened; `errors` are results that were failures."""

    output: str
    calls: tuple[Call, ...]
    errors: tuple[str, ...]


class Player(Protocol):
    """Plays a script through one framework's real agent."""

    async def __call__(
        self, script: Script, specs: Sequence[ToolSpec], executor: Executor
    ) -> Played:
        """Run the agent to its end and read its history."""
        ...
