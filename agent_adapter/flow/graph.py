"""`TransitionGraph`: who speaks next, as data.

Targets, conditions and the registry are re-exported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.core.records import StrictModel
from agent_adapter.flow.conditions import (
    AllOf,
    Always,
    AnyOf,
    ContextEquals,
    ContextMatches,
    FromSpeaker,
    Not,
    ToolCalled,
    TransitionCondition,
    TurnCountAtLeast,
    atoms,
)
from agent_adapter.flow.findings import ChannelFacts, Finding
from agent_adapter.flow.registry import (
    TransitionRegistry,
    part_to_dict,
    register_condition,
    register_target,
)
from agent_adapter.flow.targets import (
    AgentTarget,
    RevertToInitiatorTarget,
    RoundRobinTarget,
    StayTarget,
    TerminateTarget,
    TransitionDecision,
    TransitionTarget,
    checked_text,
)
from agent_adapter.flow.transitions import Transition, checked_max_turns, in_order
from agent_adapter.flow.wire import read_graph_object

__all__ = [
    "AgentTarget",
    "AllOf",
    "Always",
    "AnyOf",
    "ContextEquals",
    "ContextMatches",
    "FromSpeaker",
    "Not",
    "RevertToInitiatorTarget",
    "RoundRobinTarget",
    "StayTarget",
    "TerminateTarget",
    "ToolCalled",
    "Transition",
    "TransitionCondition",
    "TransitionDecision",
    "TransitionGraph",
    "TransitionRegistry",
    "TransitionTarget",
    "TurnCountAtLeast",
    "WorkflowGraphError",
    "register_condition",
    "register_target",
]

MAX_TRANSITIONS = 1000
"""The most transitions of a graph that is read."""

MAX_CONDITIONS = 2000
"""The most elementary conditions of a graph that is read."""


class _GraphObject(StrictModel):
    # Any: `TransitionGraph` and the registry check these themselves.
    initial_speaker: Any
    transitions: Annotated[list[Any], Field(strict=False)] | None = None  # or a tuple
    default_target: Any = None
    max_turns: Any = None


class _TransitionObject(StrictModel):
    when: Any
    then: Any
    priority: Any = 0


@dataclass(slots=True)
class TransitionGraph:
    """The rules of a channel's turns.

    Attributes:
        initial_speaker: the id of the participant whose turn is first.
        transitions: evaluated by ascending priority, equal priorities in list order; the first
            that fires decides.
        default_target: decides if no transition fires.
        max_turns: after this many turns the channel closes with the reason `max_turns`, unless
            the graph gives a reason of its own; `None` is no limit.
    """

    initial_speaker: str
    transitions: list[Transition] = field(default_factory=list)
    default_target: TransitionTarget = field(default_factory=TerminateTarget)
    max_turns: int | None = None

    def __post_init__(self) -> None:
        checked_text(self.initial_speaker, "TransitionGraph.initial_speaker", "a participant's id")
        checked_max_turns(self.max_turns)

    def ordered(self) -> tuple[Transition, ...]:
        """The transitions in the order in which they are evaluated."""
        return in_order(self.transitions)

    def tool_names(self) -> frozenset[str]:
        """The tools whose calls route a turn, wherever a condition names them."""
        found = (atom for item in self.transitions for atom in atoms(item.when))
        return frozenset(atom.tool_name for atom in found if isinstance(atom, ToolCalled))

    def to_dict(self) -> dict[str, Any]:
        """The graph in its wire form, JSON values only."""
        return {
            "initial_speaker": self.initial_speaker,
            "transitions": [
                {
                    "when": part_to_dict(item.when),
                    "then": part_to_dict(item.then),
                    "priority": item.priority,
                }
                for item in self.transitions
            ],
            "default_target": part_to_dict(self.default_target),
            "max_turns": self.max_turns,
        }

    def dumps(self) -> str:
        """`to_dict` as JSON text with sorted keys."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, registry: TransitionRegistry | None = None
    ) -> TransitionGraph:
        """The graph that `to_dict` wrote; raises `WorkflowGraphError` for an invalid one.

        `registry` resolves targets and conditions; `None` is the process-wide registry.
        """
        read = read_graph_object(_GraphObject, data, "the graph")
        known = registry if registry is not None else TransitionRegistry.default()
        return cls(
            initial_speaker=read.initial_speaker,
            transitions=list(_read_transitions(read.transitions or (), known)),
            default_target=known.target_from_dict(read.default_target),
            max_turns=read.max_turns,
        )

    @classmethod
    def loads(
        cls,
        data: str | bytes | Mapping[str, Any],
        *,
        registry: TransitionRegistry | None = None,
    ) -> TransitionGraph:
        """The graph that `dumps` or `to_dict` wrote."""
        if isinstance(data, (str, bytes)):
            try:
                data = json.loads(data)
            except (ValueError, RecursionError) as exc:
                raise WorkflowGraphError(f"the graph is not JSON: {exc}") from exc
        return cls.from_dict(data, registry=registry)  # type: ignore[arg-type]  # checked there

    @classmethod
    def sequence(cls, steps: Sequence[str]) -> TransitionGraph:
        """One turn for each of `steps`, in order; then the channel closes: `sequence_complete`.

        A participant may have several steps. Its rules then also count the turns, which graphs of
        AG2 cannot do.
        """
        ids = _checked_ids(steps, "sequence")
        return cls(
            initial_speaker=ids[0],
            transitions=list(_steps(ids)),
            default_target=TerminateTarget("sequence_complete"),
            max_turns=len(ids),
        )

    @classmethod
    def round_robin(
        cls, participants: Sequence[str], *, max_turns: int | None = None
    ) -> TransitionGraph:
        """Turns in the channel's order until `max_turns`.

        Without `max_turns` it opens only in a channel with `knobs["unbounded"]`.
        """
        ids = _checked_ids(participants, "round_robin")
        return cls(
            initial_speaker=ids[0],
            transitions=[Transition(Always(), RoundRobinTarget())],
            default_target=TerminateTarget("round_robin_complete"),
            max_turns=max_turns,
        )

    def check(self, facts: ChannelFacts | None = None) -> list[Finding]:
        """The findings of the static checks; more `facts` allow more checks.

        A channel does not open with a graph that has findings of severity `error`.
        """
        from agent_adapter.flow.check import check_graph

        return check_graph(self, facts)

    def to_mermaid(self, names: Mapping[str, str] | None = None) -> str:
        """The graph as a Mermaid flowchart; `names` gives the names to show for ids."""
        from agent_adapter.flow.mermaid import drawn

        return drawn(self, names or {})


def _read_transitions(rules: Any, registry: TransitionRegistry) -> Iterator[Transition]:
    if len(rules) > MAX_TRANSITIONS:
        raise WorkflowGraphError(
            f"the graph has {len(rules)} transitions; {MAX_TRANSITIONS} are the most"
        )
    left = MAX_CONDITIONS
    for index, data in enumerate(rules):
        try:
            read = read_graph_object(_TransitionObject, data, "the transition")
            if read.then is None:
                raise WorkflowGraphError("then names no target")
            when = registry.condition_from_dict(read.when)
            left -= sum(1 for _ in atoms(when))
            if left < 0:
                raise WorkflowGraphError(f"the graph has more than {MAX_CONDITIONS} conditions")
            yield Transition(
                when=when,
                then=registry.target_from_dict(read.then),
                priority=read.priority,
            )
        except WorkflowGraphError as exc:
            raise WorkflowGraphError(f"transitions[{index}]: {exc}") from exc


def _steps(ids: Sequence[str]) -> Iterator[Transition]:
    """The rules of a sequence, in the order of the steps; of one speaker the latest first."""
    places: dict[str, list[int]] = {}
    for place, speaker in enumerate(ids):
        places.setdefault(speaker, []).append(place)
    for speaker, own in places.items():
        for place in reversed(own):
            spoke: TransitionCondition = FromSpeaker(speaker)
            last = place == len(ids) - 1
            if last and len(own) == 1:
                continue  # the default ends the channel
            if place != own[0]:
                spoke = AllOf([spoke, TurnCountAtLeast(place + 1)])
            end = TerminateTarget("sequence_complete")
            yield Transition(spoke, end if last else AgentTarget(ids[place + 1]))


def _checked_ids(ids: Any, where: str) -> list[str]:
    if isinstance(ids, str) or not isinstance(ids, Sequence) or not ids:
        raise WorkflowGraphError(f"{where} takes a list of at least one participant's id")
    for item in ids:
        checked_text(item, f"{where}: each entry", "a participant's id")
    return list(ids)
