"""Targets: where the next turn goes when a transition fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.flow.state import WorkflowState


@dataclass(slots=True)
class TransitionDecision:
    """The decision of a target; `next_speaker=None` closes the channel with `close_reason`."""

    next_speaker: str | None
    close_reason: str = ""


class TransitionTarget(Protocol):
    """Decides who speaks next, from the state and the accepted envelope alone.

    A custom target is a dataclass with a class-level `name`, registered with `register_target`; its
    fields, JSON values, are its `args` in the graph's wire form.
    """

    name: ClassVar[str]

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The decision; `state` already counts `envelope`."""
        ...


@dataclass(slots=True)
class AgentTarget:
    """The participant with this id."""

    agent_id: str
    name: ClassVar[str] = "agent"

    def __post_init__(self) -> None:
        checked_text(self.agent_id, "AgentTarget.agent_id", "a participant's id")

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The named participant."""
        return TransitionDecision(self.agent_id)


@dataclass(slots=True)
class RoundRobinTarget:
    """The participant after the last speaker, in the channel's order."""

    name: ClassVar[str] = "round_robin"

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The next in order; the first if the last speaker is not in it."""
        order = state.participant_order
        if not order:
            return TransitionDecision(None, "no_participants")
        last = state.last_speaker_id or envelope.sender_id
        position = order.index(last) + 1 if last in order else 0
        return TransitionDecision(order[position % len(order)])


@dataclass(slots=True)
class StayTarget:
    """The last speaker once more."""

    name: ClassVar[str] = "stay"

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The last speaker."""
        return TransitionDecision(state.last_speaker_id or envelope.sender_id)


@dataclass(slots=True)
class RevertToInitiatorTarget:
    """The participant who opened the channel."""

    name: ClassVar[str] = "revert_to_initiator"

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The channel's creator."""
        return TransitionDecision(state.creator_id)


@dataclass(slots=True)
class TerminateTarget:
    """No one: the channel closes with `reason`."""

    reason: str = "after_work"
    name: ClassVar[str] = "terminate"

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise WorkflowGraphError(f"TerminateTarget.reason is text, not {self.reason!r:.80}")

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The end."""
        return TransitionDecision(None, self.reason)


BUILTIN_TARGETS: tuple[type[TransitionTarget], ...] = (
    AgentTarget,
    RoundRobinTarget,
    StayTarget,
    RevertToInitiatorTarget,
    TerminateTarget,
)
"""The targets that every registry knows."""


def checked_text(value: Any, where: str, what: str) -> None:
    """Refuse a `value` that is not text with something in it; `what` says what belongs there."""
    if isinstance(value, str) and value:
        return
    hint = "; pass its .agent_id" if hasattr(value, "agent_id") else ""
    raise WorkflowGraphError(f"{where} is {what} (text, not empty), not {value!r:.80}{hint}")
