"""`Subject`: a graph under examination, with what every check wants to know."""

from __future__ import annotations

from dataclasses import dataclass

from agent_adapter.flow.conditions import Always, TransitionCondition
from agent_adapter.flow.findings import ChannelFacts
from agent_adapter.flow.logic import covered
from agent_adapter.flow.targets import AgentTarget, StayTarget, TerminateTarget, TransitionTarget
from agent_adapter.flow.transitions import GraphRules, Transition


@dataclass(frozen=True, slots=True)
class NumberedTransition:
    """A transition with its place in the list, where the reader finds it."""

    index: int
    transition: Transition

    @property
    def where(self) -> str:
        """The place, as the reader finds it."""
        return f"transitions[{self.index}]"

    @property
    def when(self) -> TransitionCondition:
        """The transition's condition."""
        return self.transition.when

    @property
    def then(self) -> TransitionTarget:
        """The transition's target."""
        return self.transition.then


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph under examination.

    `rules` are in the order in which they are looked at; `dead` holds the indices of those that an
    earlier one always beats; `speakers` are all who can ever speak, `None` where unknown.
    """

    graph: GraphRules
    facts: ChannelFacts
    rules: tuple[NumberedTransition, ...]
    dead: frozenset[int]
    speakers: tuple[str, ...] | None
    default_dead: bool

    def before(self, rule: NumberedTransition) -> list[TransitionCondition]:
        """The conditions that are looked at before that of `rule`."""
        return [item.when for item in self.rules[: self.rules.index(rule)]]

    def named(self, participant: str) -> str:
        """The participant's name with its id, or the id where no name is known."""
        name = self.facts.names.get(participant)
        return f"{name} ({participant})" if name else participant


def subject_of(graph: GraphRules, facts: ChannelFacts) -> Subject:
    """`graph` and what follows from it before any single mistake is looked for."""
    numbered = [NumberedTransition(index, rule) for index, rule in enumerate(graph.transitions)]
    rules = tuple(sorted(numbered, key=lambda rule: rule.transition.priority))
    speakers = _speakers(graph, facts)
    conditions = [rule.when for rule in rules]
    # A tool can hand the turn to a participant that no rule names, so a rule is called dead only
    # on the word of the whole list of participants.
    dead = frozenset(
        rule.index
        for position, rule in enumerate(rules)
        if covered(rule.when, conditions[:position], facts.participants)
    )
    return Subject(graph, facts, rules, dead, speakers, covered(Always(), conditions, speakers))


def _speakers(graph: GraphRules, facts: ChannelFacts) -> tuple[str, ...] | None:
    """All who can speak: the participants, or where they are unknown whom the rules can reach."""
    if facts.participants is not None:
        return tuple(facts.participants)
    targets = [rule.then for rule in graph.transitions] + [graph.default_target]
    if not all(isinstance(item, (AgentTarget, StayTarget, TerminateTarget)) for item in targets):
        return None
    named = [item.agent_id for item in targets if isinstance(item, AgentTarget)]
    return tuple(dict.fromkeys([graph.initial_speaker, *named]))
