"""Checks whose findings are errors: no channel opens with such a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.conditions import (
    Always,
    ContextEquals,
    ContextMatches,
    FromSpeaker,
    TransitionCondition,
    atoms,
)
from agent_adapter.flow.context_vars import writers_of
from agent_adapter.flow.expressions import compiled_expression
from agent_adapter.flow.findings import ChannelFacts, Finding
from agent_adapter.flow.subject import Subject
from agent_adapter.flow.targets import (
    AgentTarget,
    RevertToInitiatorTarget,
    StayTarget,
    TerminateTarget,
    TransitionTarget,
)
from agent_adapter.flow.transitions import GraphRules, checked_max_turns


def bad_max_turns(subject: Subject) -> Iterator[Finding]:
    """Findings about an invalid `max_turns`."""
    try:
        checked_max_turns(subject.graph.max_turns)
    except WorkflowGraphError as exc:
        yield Finding(
            code="bad-max-turns",
            severity="error",
            message=str(exc),
            where="max_turns",
            fix="give a whole number from 1, or None",
        )


def duplicate_participants(subject: Subject) -> Iterator[Finding]:
    """Findings about participants listed twice."""
    for participant, times in Counter(subject.facts.participants or ()).items():
        if times > 1:
            yield Finding(
                code="duplicate-participant",
                severity="error",
                message=f"{subject.named(participant)} takes part {times} times",
                where="participants",
                fix="list each participant once; the opener takes part without being listed",
            )


def strangers(subject: Subject) -> Iterator[Finding]:
    """Findings about unknown ids, and names in place of ids."""
    participants = subject.facts.participants
    if participants is None:
        return
    present = frozenset(participants)
    known = ", ".join(map(subject.named, participants[:20]))
    ids = {name: participant for participant, name in subject.facts.names.items()}
    for where, named in _named_ids(subject.graph):
        if named in present:
            continue
        if named in ids:
            yield Finding(
                code="name-for-id",
                severity="error",
                message=f"{named!r:.80} is a participant's name where its id belongs",
                where=where,
                fix=f"write {ids[named]!r}, the agent_id of {named}",
            )
            continue
        yield Finding(
            code="unknown-participant",
            severity="error",
            message=f"{named!r:.80} does not take part in the channel",
            where=where,
            fix=f"use the id of a participant: {known}",
        )


def open_route_to_privileged(subject: Subject) -> Iterator[Finding]:
    """Findings about variables that anybody may set and that route to a privileged participant.

    A rule counts with those before it: they decide whether it is reached.
    """
    acl = subject.facts.context_acl
    before: set[str] = set()
    rules = [(rule.where, rule.then, rule.when) for rule in subject.rules]
    for where, then, when in (*rules, ("default_target", subject.graph.default_target, Always())):
        before |= {key or "*" for key in _keys(when) if _is_open(key, acl)}
        privileged = _privileged(then, subject)
        if privileged and before:
            named = ", ".join(map(repr, sorted(before)))
            yield Finding(
                code="open-route-to-privileged",
                severity="error",
                message=(
                    f"every participant can set {named}, which decides whether "
                    f"{subject.named(privileged)} gets the turn, and that participant is privileged"
                ),
                where=where,
                fix=f"name the writers of {named} in knobs['context_acl']",
            )


def next_speaker(target: TransitionTarget, facts: ChannelFacts) -> str | None:
    """The one participant to whom the target gives the turn; `None` if that is not certain."""
    if isinstance(target, AgentTarget):
        return target.agent_id
    if isinstance(target, RevertToInitiatorTarget):
        return facts.opener
    return None


def _privileged(target: TransitionTarget, subject: Subject) -> str | None:
    """A privileged participant to whom the target may give the turn."""
    facts = subject.facts
    if isinstance(target, (TerminateTarget, StayTarget)):
        return None  # whoever stays has the turn already
    if isinstance(target, (AgentTarget, RevertToInitiatorTarget)):
        speaker = next_speaker(target, facts)
        return speaker if speaker in facts.privileged else None
    return min(facts.privileged, default=None)


def _keys(when: TransitionCondition) -> set[str | None]:
    """The variables that a condition reads; `None` stands for any."""
    found: set[str | None] = set()
    for atom in atoms(when):
        if isinstance(atom, ContextEquals):
            found.add(atom.key)
        elif isinstance(atom, ContextMatches):
            found |= compiled_expression(atom.expression).variables
    return found


def _is_open(key: str | None, acl: Mapping[str, Sequence[str]]) -> bool:
    return "*" not in acl if key is None else writers_of(key, acl) is None


def _named_ids(graph: GraphRules) -> Iterator[tuple[str, str]]:
    yield "initial_speaker", graph.initial_speaker
    for index, rule in enumerate(graph.transitions):
        for atom in atoms(rule.when):
            if isinstance(atom, FromSpeaker):
                yield f"transitions[{index}].when", atom.agent_id
        if isinstance(rule.then, AgentTarget):
            yield f"transitions[{index}].then", rule.then.agent_id
    if isinstance(graph.default_target, AgentTarget):
        yield "default_target", graph.default_target.agent_id
