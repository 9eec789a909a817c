"""`check_graph`: static checks of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent_adapter.flow.conditions import (
    Always,
    ContextEquals,
    ContextMatches,
    FromSpeaker,
    ToolCalled,
    TransitionCondition,
    TurnCountAtLeast,
    atoms,
)
from agent_adapter.flow.endless import endless
from agent_adapter.flow.findings import ChannelFacts, Finding
from agent_adapter.flow.logic import disjoint, implies
from agent_adapter.flow.refusals import (
    bad_max_turns,
    duplicate_participants,
    next_speaker,
    open_route_to_privileged,
    strangers,
)
from agent_adapter.flow.subject import NumberedTransition, Subject, subject_of
from agent_adapter.flow.targets import AgentTarget, StayTarget, TerminateTarget
from agent_adapter.flow.transitions import GraphRules


def check_graph(graph: GraphRules, facts: ChannelFacts | None = None) -> list[Finding]:
    """The findings about `graph`, errors first; more `facts` allow more checks."""
    subject = subject_of(graph, facts or ChannelFacts())
    found = [finding for look in (*_REFUSALS, *_CHECKS) for finding in look(subject)]
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda finding: rank[finding.severity])


def graph_errors(graph: GraphRules, facts: ChannelFacts) -> list[Finding]:
    """The findings with which no channel opens, in time that grows with the size of the graph.

    Not whether it ends: that is `endless_parts`, and the opener may allow it. The other checks
    compare all rules with each other: too long for a graph of a foreign party.
    """
    subject = subject_of(graph, facts, compared=False)
    found = [finding for look in _REFUSALS for finding in look(subject)]
    return [finding for finding in found if finding.severity == "error"]


# --- rules that cannot do what they say -------------------------------------------------------


def _reversed_priorities(subject: Subject) -> Iterator[Finding]:
    for rule in subject.rules:
        if not _specific(rule):
            continue
        beaten_by = [
            other
            for other in subject.rules
            if other.transition.priority < rule.transition.priority
            and _general(other)
            and not disjoint(rule.when, other.when)
        ]
        if not beaten_by:
            continue
        places = ", ".join(other.where for other in beaten_by)
        lowest = min(other.transition.priority for other in beaten_by)
        yield Finding(
            code="priority-reversed",
            severity="warning",
            message=(
                f"priority {rule.transition.priority} puts this rule after {places}, which "
                "decides first on the same turn: the LOWER number is looked at first"
            ),
            where=rule.where,
            fix=f"give it a priority below {lowest}, or none and list it first",
        )


def _specific(rule: NumberedTransition) -> bool:
    kinds = (ContextEquals, ContextMatches, ToolCalled, TurnCountAtLeast)
    return any(isinstance(atom, kinds) for atom in atoms(rule.when))


def _general(rule: NumberedTransition) -> bool:
    plain = all(isinstance(atom, (Always, FromSpeaker)) for atom in atoms(rule.when))
    return plain and not isinstance(rule.then, TerminateTarget)


def _dead_rules(subject: Subject) -> Iterator[Finding]:
    for rule in subject.rules:
        if rule.index not in subject.dead:
            continue
        earlier = [item for item in subject.rules if implies(rule.when, item.when)]
        first = earlier[0].where if earlier[0] is not rule else "the rules before it together"
        yield Finding(
            code="unreachable-transition",
            severity="warning",
            message=f"it never decides: {first} always fires first",
            where=rule.where,
            fix="list it earlier, give it a lower priority, or remove it",
        )


def _dead_default(subject: Subject) -> Iterator[Finding]:
    if not subject.default_dead:
        return
    reason = getattr(subject.graph.default_target, "reason", None)
    ends = f", so the channel never closes as {reason!r}" if reason else ""
    limit = " (reaching max_turns closes it as 'max_turns')" if subject.graph.max_turns else ""
    yield Finding(
        code="shadowed-default",
        severity="info",
        message=f"some transition fires on every turn and the default is never used{ends}{limit}",
        where="default_target",
        fix="do not wait for its reason; or leave a turn on which no transition fires",
    )


# --- rules that do more than is meant ---------------------------------------------------------


def _sticky_context(subject: Subject) -> Iterator[Finding]:
    for rule in subject.rules:
        if rule.index in subject.dead or not _lasting(rule.when):
            continue
        speaker = next_speaker(rule.then, subject.facts)
        if speaker is None:
            continue
        again: TransitionCondition = FromSpeaker(speaker)
        earlier = subject.before(rule)
        if any(implies(again, other) for other in earlier):
            continue
        who = subject.named(speaker)
        yield Finding(
            code="sticky-context",
            severity="warning",
            message=(
                f"the condition stays true after {who} has spoken, so the turn comes back to "
                f"{who} until the variable changes"
            ),
            where=rule.where,
            fix=(
                f"put a rule FromSpeaker({speaker!r}) before it, or let {who} delete the variable"
            ),
        )


def _lasting(when: TransitionCondition) -> bool:
    """Whether the condition, once true, is true on the next turn, no matter who speaks."""
    parts = list(atoms(when))
    lasting = (ContextEquals, ContextMatches, TurnCountAtLeast, Always)
    context = any(isinstance(part, (ContextEquals, ContextMatches)) for part in parts)
    return context and all(isinstance(part, lasting) for part in parts)


def _matches_missing_key(subject: Subject) -> Iterator[Finding]:
    for rule in subject.rules:
        for atom in atoms(rule.when):
            if not isinstance(atom, ContextEquals) or atom.value is not None:
                continue
            if atom.key in subject.facts.context_vars:
                continue
            yield Finding(
                code="matches-missing-key",
                severity="warning",
                message=f"it is true from the first turn on: a missing {atom.key!r} equals None",
                where=rule.where,
                fix=f"compare with a value, or open the channel with context_vars[{atom.key!r}]",
            )


def _kickoff(subject: Subject) -> Iterator[Finding]:
    first, opener = subject.graph.initial_speaker, subject.facts.opener
    if first in subject.facts.people:
        return
    who = subject.named(first)
    swallowed = f"the opener's first send counts as the turn of {who}, whose model is not asked"
    fix = "open with a person (register_human) as initial_speaker and route from them to the agent"
    if opener == first:
        yield Finding(
            code="kickoff-is-first-turn",
            severity="warning",
            message=swallowed,
            where="initial_speaker",
            fix=fix,
        )
    elif opener is None and not _comes_back(subject, first):
        yield Finding(
            code="kickoff-is-first-turn",
            severity="info",
            message=f"if {who} opens the channel, {swallowed}, and no rule gives it another",
            where="initial_speaker",
            fix=f"nothing if {who} is a person; else {fix}",
        )


def _comes_back(subject: Subject, participant: str) -> bool:
    targets = [rule.then for rule in subject.rules] + [subject.graph.default_target]
    return any(
        getattr(target, "agent_id", participant) == participant
        for target in targets
        if not isinstance(target, TerminateTarget)
    )


def _opener_cannot_speak(subject: Subject) -> Iterator[Finding]:
    first, opener = subject.graph.initial_speaker, subject.facts.opener
    if opener is not None and opener != first:
        yield Finding(
            code="opener-cannot-speak",
            severity="info",
            message=(
                f"{subject.named(opener)} opens the channel, but {subject.named(first)} speaks "
                "first: the opener's first text is the brief that it waits for, and no turn"
            ),
            where="initial_speaker",
            fix="nothing; or make the opener the initial_speaker and route on from there",
        )


def _never_speaks(subject: Subject) -> Iterator[Finding]:
    participants = subject.facts.participants
    if participants is None:
        return
    targets = [rule.then for rule in subject.rules] + [subject.graph.default_target]
    if not all(isinstance(item, (AgentTarget, StayTarget, TerminateTarget)) for item in targets):
        return
    reached = {item.agent_id for item in targets if isinstance(item, AgentTarget)}
    for participant in participants:
        if participant not in reached and participant != subject.graph.initial_speaker:
            yield Finding(
                code="never-speaks",
                severity="info",
                message=f"no rule gives the turn to {subject.named(participant)}",
                where="graph",
                fix="nothing if a tool hands off to it; else add a transition to it",
            )


_REFUSALS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    bad_max_turns,
    duplicate_participants,
    strangers,
    open_route_to_privileged,
)
_CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    _reversed_priorities,
    _dead_rules,
    _dead_default,
    endless,
    _sticky_context,
    _matches_missing_key,
    _kickoff,
    _opener_cannot_speak,
    _never_speaks,
)
