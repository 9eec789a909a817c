"""Finds graphs that run for ever: no end can be reached, or a part of them is never left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agent_adapter.flow.conditions import (
    AllOf,
    Always,
    AnyOf,
    FromSpeaker,
    Not,
    TransitionCondition,
    atoms,
)
from agent_adapter.flow.findings import ChannelFacts, Finding, Severity
from agent_adapter.flow.subject import Subject, subject_of
from agent_adapter.flow.targets import (
    AgentTarget,
    RevertToInitiatorTarget,
    RoundRobinTarget,
    StayTarget,
    TransitionTarget,
)
from agent_adapter.flow.transitions import GraphRules

_END = ""
"""Stands for the end of the channel among the possible next speakers: no participant's id."""

_MOST_NAMED = 5
_FIX = (
    "set max_turns, add a transition to TerminateTarget(…) that can be reached from there, or open "
    "the channel with knobs['unbounded'] = True"
)


def endless_parts(graph: GraphRules, facts: ChannelFacts) -> list[Finding]:
    """The error of a graph without an end, in time that grows with the graph's size."""
    return list(endless(subject_of(graph, facts, compared=False), "error"))


def endless(subject: Subject, severity: Severity = "warning") -> Iterator[Finding]:
    """A finding if the channel, or a part of it that can be entered, never ends.

    A condition on variables, tools or turns counts as one that may become true. What tools decide
    with `Handoff` and `Finish` is not in the graph, so it does not count.
    """
    if subject.graph.max_turns is not None or subject.facts.unbounded:
        return
    after = _reachable(subject)
    ending = _leading_to(_END, after)
    stuck = [speaker for speaker in after if speaker not in ending]
    if not stuck:
        return
    if subject.graph.initial_speaker in stuck:
        message = "no rule that can decide ends the channel, and there is no max_turns"
        yield Finding(
            code="no-way-to-end", severity=severity, message=message, where="graph", fix=_FIX
        )
        return
    named = ", ".join(map(subject.named, stuck[:_MOST_NAMED]))
    more = "" if len(stuck) <= _MOST_NAMED else f" and {len(stuck) - _MOST_NAMED} more"
    message = f"once {named}{more} has the turn no rule ends the channel, and there is no max_turns"
    yield Finding(code="endless-loop", severity=severity, message=message, where="graph", fix=_FIX)


def _reachable(subject: Subject) -> dict[str, frozenset[str]]:
    """The possible next speakers of every speaker that the first one's turn can lead to."""
    fires = [_by_speaker(rule.when) for rule in subject.rules]
    found: dict[str, frozenset[str]] = {}
    left = [subject.graph.initial_speaker]
    while left:
        speaker = left.pop()
        if speaker in found or speaker == _END:
            continue
        found[speaker] = frozenset(_next_of(subject, fires, speaker))
        left.extend(found[speaker])
    return found


def _next_of(
    subject: Subject, fires: Sequence[Callable[[str], bool | None]], speaker: str
) -> Iterator[str]:
    for rule, fires_for in zip(subject.rules, fires, strict=True):
        certain = fires_for(speaker)
        if certain is False:
            continue
        yield from _speakers_of(rule.then, subject, speaker)
        if certain:
            return
    yield from _speakers_of(subject.graph.default_target, subject, speaker)


def _speakers_of(target: TransitionTarget, subject: Subject, speaker: str) -> Iterable[str]:
    facts = subject.facts
    if isinstance(target, AgentTarget):
        return (target.agent_id,)
    if isinstance(target, StayTarget):
        return (speaker,)
    if isinstance(target, RevertToInitiatorTarget):
        return _mentioned(subject) if facts.opener is None else (facts.opener,)
    if isinstance(target, RoundRobinTarget):
        order = list(facts.participants or ())
        if speaker in order:
            return (order[(order.index(speaker) + 1) % len(order)],)
        return _mentioned(subject)
    # A custom target may end the channel.
    return (_END,)


def _mentioned(subject: Subject) -> set[str]:
    """The participants, or those that the graph names if they are unknown."""
    if subject.facts.participants is not None:
        return set(subject.facts.participants)
    targets = [rule.then for rule in subject.rules] + [subject.graph.default_target]
    named = {item.agent_id for item in targets if isinstance(item, AgentTarget)}
    return named | {subject.graph.initial_speaker}


def _leading_to(end: str, after: Mapping[str, frozenset[str]]) -> set[str]:
    """The speakers from which `end` can be reached."""
    before: dict[str, list[str]] = {}
    for speaker, nexts in after.items():
        for item in nexts:
            before.setdefault(item, []).append(speaker)
    found: set[str] = set()
    left = [end]
    while left:
        for speaker in before.get(left.pop(), ()):
            if speaker not in found:
                found.add(speaker)
                left.append(speaker)
    return found


def _by_speaker(when: TransitionCondition) -> Callable[[str], bool | None]:
    """Whether the condition fires after a turn of a speaker; looked at once for all not named."""
    named = {atom.agent_id for atom in atoms(when) if isinstance(atom, FromSpeaker)}
    known: dict[str, bool | None] = {}

    def fires(speaker: str) -> bool | None:
        key = speaker if speaker in named else _END
        if key not in known:
            known[key] = _certain(when, key)
        return known[key]

    return fires


def _certain(when: TransitionCondition, speaker: str) -> bool | None:
    """Whether the condition fires after a turn of `speaker`; `None` if that depends."""
    if isinstance(when, Always):
        return True
    if isinstance(when, FromSpeaker):
        return when.agent_id == speaker
    if isinstance(when, Not):
        inner = _certain(when.condition, speaker)
        return None if inner is None else not inner
    if isinstance(when, (AllOf, AnyOf)):
        decisive = isinstance(when, AnyOf)
        parts = [_certain(part, speaker) for part in when.conditions]
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    return None
