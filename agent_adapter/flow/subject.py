"""`Subject`: a graph under examination, with facts shared by all checks."""

from __future__ import annotations

from dataclasses import dataclass

from agent_adapter.flow.conditions import Always, TransitionCondition
from agent_adapter.flow.findings import ChannelFacts
from agent_adapter.flow.logic import covered
from agent_adapter.flow.targets import AgentTarget, StayTarget, TerminateTarget, TransitionTarget
from agent_adapter.flow.transitions import GraphRules, Transition


@dataclass(frozen=True, slots=True)
class NumberedTransition:
    """A transition with its index in the graph's list."""

    index: int
    transition: Transition

    @property
    def where(self) -> str:
        """Its place, as findings name it."""
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

    `rules` are in order of evaluation; `dead` holds the indices of rules that an earlier one always
    precedes; `speakers` are all participants who can ever speak, `None` if unknown.
    """

    graph: GraphRules
    facts: ChannelFacts
    rules: tuple[NumberedTransition, ...]
    dead: frozenset[int]
    speakers: tuple[str, ...] | None
    default_dead: bool

    def before(self, rule: NumberedTransition) -> list[TransitionCondition]:
        """The conditions that are evaluated before that of `rule`."""
        return [item.when for item in self.rules[: self.rules.index(rule)]]

    def named(self, participant: str) -> str:
        """The participant's name with its id, or the id alone if the name is unknown."""
        name = self.facts.names.get(participant)
        return f"{name} ({participant})" if name else participant


def subject_of(graph: GraphRules, facts: ChannelFacts, *, compared: bool = True) -> Subject:
    """The examined form of `graph`; unless `compared`, no rule is taken for dead."""
    numbered = [NumberedTransition(index, rule) for index, rule in enumerate(graph.transitions)]
    rules = tuple(sorted(numbered, key=lambda rule: rule.transition.priority))
    speakers = _speakers(graph, facts)
    if not compared:
        return Subject(graph, facts, rules, frozenset(), speakers, default_dead=False)
    conditions = [rule.when for rule in rules]
    # A tool can hand the turn to a participant that no rule names: reachability by rules alone
    # does not prove a rule dead, only the full list of participants does.
    dead = frozenset(
        rule.index
        for position, rule in enumerate(rules)
        if covered(rule.when, conditions[:position], facts.participants)
    )
    return Subject(graph, facts, rules, dead, speakers, covered(Always(), conditions, speakers))


def _speakers(graph: GraphRules, facts: ChannelFacts) -> tuple[str, ...] | None:
    """All possible speakers: the participants or, if unknown, those that the rules can reach."""
    if facts.participants is not None:
        return tuple(facts.participants)
    targets = [rule.then for rule in graph.transitions] + [graph.default_target]
    if not all(isinstance(item, (AgentTarget, StayTarget, TerminateTarget)) for item in targets):
        return None
    named = [item.agent_id for item in targets if isinstance(item, AgentTarget)]
    return tuple(dict.fromkeys([graph.initial_speaker, *named]))
