"""`Transition`, and what the checks and the drawing read of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.conditions import TransitionCondition
from agent_adapter.flow.targets import TransitionTarget


@dataclass(slots=True)
class Transition:
    """If `when` fires, `then` decides the next speaker; a LOWER `priority` is evaluated first."""

    when: TransitionCondition
    then: TransitionTarget
    priority: int = 0

    def __post_init__(self) -> None:
        if type(self.priority) is not int:
            raise WorkflowGraphError(
                f"Transition.priority is a whole number (lower is first), not {self.priority!r:.80}"
            )


class GraphRules(Protocol):
    """The fields of a `TransitionGraph`, for code that the graph itself calls."""

    initial_speaker: str
    transitions: list[Transition]
    default_target: TransitionTarget
    max_turns: int | None


def in_order(transitions: Sequence[Transition]) -> tuple[Transition, ...]:
    """Transitions by ascending priority; equal priorities keep their order."""
    return tuple(sorted(transitions, key=lambda item: item.priority))


def checked_max_turns(value: Any) -> None:
    """Refuse a `max_turns` that is neither `None` nor a whole number from 1."""
    if value is not None and (type(value) is not int or value < 1):
        raise WorkflowGraphError(
            f"max_turns is a whole number from 1, or None for no limit, not {value!r:.80}"
        )
