"""Checks whose findings are errors: no channel opens with such a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.conditions import FromSpeaker, atoms
from agent_adapter.flow.findings import Finding
from agent_adapter.flow.subject import Subject
from agent_adapter.flow.targets import AgentTarget
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
    ids = {name: participant for participant, name in subject.facts.names.items()}
    for where, named in _named_ids(subject.graph):
        if named in participants:
            continue
        if named in ids:
            yield Finding(
                code="name-for-id",
                severity="error",
                message=f"{named!r} is a participant's name where its id belongs",
                where=where,
                fix=f"write {ids[named]!r}, the agent_id of {named}",
            )
            continue
        yield Finding(
            code="unknown-participant",
            severity="error",
            message=f"{named!r} does not take part in the channel",
            where=where,
            fix=f"use the id of a participant: {', '.join(map(subject.named, participants))}",
        )


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
