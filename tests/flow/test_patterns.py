"""The well-known patterns of collaboration, as graphs: each ends as meant and checks sound."""

from __future__ import annotations

import pytest

from agent_adapter.flow import (
    AgentTarget,
    ChannelFacts,
    ContextEquals,
    Envelope,
    FromSpeaker,
    RevertToInitiatorTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
    close_reason,
    fold,
    opening_state,
)
from tests.flow.builders import packet, text

ORDER = ["user", "one", "two", "three"]
FACTS = ChannelFacts(participants=ORDER, people=frozenset({"user"}), opener="user")


def _say(speaker: str, target: str) -> Transition:
    return Transition(FromSpeaker(speaker), AgentTarget(target))


def _to(target: str) -> dict[str, str]:
    return {"kind": "handoff", "tool": "route", "target": target}


def _called(tool: str) -> dict[str, str]:
    return {"kind": "handoff", "tool": tool}


PIPELINE = TransitionGraph.sequence(ORDER)
HIERARCHY = TransitionGraph(
    "user",
    [
        Transition(ToolCalled("finish"), TerminateTarget("complete")),
        Transition(FromSpeaker("two"), RevertToInitiatorTarget()),
        Transition(FromSpeaker("three"), RevertToInitiatorTarget()),
    ],
    TerminateTarget("unassigned"),
    max_turns=20,
)
STAR = TransitionGraph(
    "user",
    [
        Transition(ToolCalled("synthesise"), TerminateTarget("synthesised")),
        _say("user", "one"),
        _say("two", "one"),
        _say("three", "one"),
    ],
    TerminateTarget("stopped"),
    max_turns=20,
)
ESCALATION = TransitionGraph(
    "user",
    [Transition(ToolCalled("resolve"), TerminateTarget("resolved")), _say("user", "one")],
    TerminateTarget("unresolved"),
    max_turns=10,
)
FEEDBACK = TransitionGraph(
    "user",
    [
        Transition(ContextEquals("done", True), TerminateTarget("approved")),
        _say("user", "one"),
        _say("one", "two"),
        _say("two", "one"),
    ],
    TerminateTarget("max_iterations"),
    max_turns=6,
)
ROUTING = TransitionGraph(
    "user",
    [
        Transition(FromSpeaker("two"), TerminateTarget("handled")),
        Transition(FromSpeaker("three"), TerminateTarget("handled")),
        Transition(ContextEquals("category", "x"), AgentTarget("two")),
        Transition(ContextEquals("category", "y"), AgentTarget("three")),
        _say("user", "one"),
    ],
    TerminateTarget("uncategorised"),
    max_turns=10,
)


def _run(graph: TransitionGraph, *turns: Envelope) -> tuple[list[str | None], str | None]:
    """Who was expected after each turn, and why the channel closed."""
    state, compiled = opening_state({"graph": graph.to_dict()}, FACTS, creator_id="user")
    expected: list[str | None] = []
    for turn in turns:
        state = fold(turn, state, compiled)
        expected.append(state.expected_next_speaker)
    return expected, close_reason(state, compiled)


@pytest.mark.parametrize("graph", [PIPELINE, HIERARCHY, STAR, ESCALATION, FEEDBACK, ROUTING])
def test_the_patterns_check_sound(graph: TransitionGraph) -> None:
    """None of them has an error or a warning when a person opens the channel."""
    assert [item for item in graph.check(FACTS) if item.severity != "info"] == []


def test_a_pipeline_passes_from_hand_to_hand() -> None:
    """Each step once, then the end."""
    expected, reason = _run(PIPELINE, *[text(item) for item in ORDER])
    assert (expected[:3], reason) == (["one", "two", "three"], "sequence_complete")


def test_a_hierarchy_returns_to_its_coordinator() -> None:
    """A specialist's answer goes back to whoever opened the channel."""
    turns = [packet("user", _to("two")), packet("two"), packet("user", _called("finish"))]
    assert _run(HIERARCHY, *turns) == (["two", "user", None], "complete")


def test_a_star_gathers_from_its_points() -> None:
    """The centre asks each point and ends by one call."""
    turns = [
        text("user"),
        packet("one", _to("two")),
        packet("two"),
        packet("one", _to("three")),
        packet("three"),
        packet("one", _called("synthesise")),
    ]
    assert _run(STAR, *turns) == (["one", "two", "one", "three", "one", None], "synthesised")


def test_an_escalation_climbs_until_it_is_resolved() -> None:
    """Each tier hands on or resolves; one that does neither ends it unresolved."""
    climb = [text("user"), packet("one", _to("two"))]
    assert _run(ESCALATION, *climb, packet("two", _called("resolve")))[1] == "resolved"
    assert _run(ESCALATION, *climb, packet("two"))[1] == "unresolved"


def test_a_feedback_loop_ends_when_it_is_approved() -> None:
    """Drafter and reviewer alternate until the variable is set, or the limit is reached."""
    draft = [text("user"), packet("one"), packet("two"), packet("one")]
    assert _run(FEEDBACK, *draft, packet("two", set={"done": True}))[1] == "approved"
    assert _run(FEEDBACK, *draft, packet("two"), packet("one"))[1] == "max_turns"


def test_a_variable_routes_to_the_specialist_and_does_not_stick() -> None:
    """The rule on the specialist comes first, so that its turn ends the channel."""
    turns = [text("user"), packet("one", set={"category": "y"}), packet("three")]
    assert _run(ROUTING, *turns) == (["one", "three", None], "handled")
