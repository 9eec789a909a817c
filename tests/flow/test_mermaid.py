"""Graphs as pictures."""

from __future__ import annotations

from agent_adapter.flow import (
    AgentTarget,
    AllOf,
    ContextEquals,
    FromSpeaker,
    RoundRobinTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)


def test_a_pipeline_is_a_chain() -> None:
    """Speakers are boxes with their names, rules are numbered arrows, the rest is dashed."""
    graph = TransitionGraph.sequence(["id1", "id2"])
    assert graph.to_mermaid({"id1": "writer", "id2": "editor"}) == (
        "flowchart TD\n"
        '    n0["writer"]\n'
        '    n1["editor"]\n'
        '    n2{{"any speaker"}}\n'
        '    n3(["end: sequence_complete"])\n'
        '    n4(["end: max_turns"])\n'
        "    start(( )) --> n0\n"
        '    n0 -->|"1."| n1\n'
        '    n2 -.->|"otherwise"| n3\n'
        '    n2 -.->|"after 2 turns"| n4\n'
    )


def test_rules_are_numbered_as_they_are_looked_at() -> None:
    """Priorities are already applied."""
    rules = [
        Transition(FromSpeaker("a"), AgentTarget("b"), 5),
        Transition(ToolCalled("escalate"), AgentTarget("c")),
    ]
    drawn = TransitionGraph("a", rules).to_mermaid()
    assert '|"1. escalate()"|' in drawn
    assert '|"2."|' in drawn


def test_a_condition_on_one_speaker_starts_at_that_speaker() -> None:
    """The rest of it is the arrow's label."""
    when = AllOf([FromSpeaker("a"), ContextEquals("k", 1)])
    drawn = TransitionGraph("a", [Transition(when, RoundRobinTarget())]).to_mermaid()
    assert 'n0 -->|"1. k = 1"| n1' in drawn
    assert '[/"next in order"/]' in drawn


def test_labels_are_never_markup() -> None:
    """Text from outside cannot end a label or start a tag."""
    drawn = TransitionGraph("a", [], TerminateTarget('"]\n<b>#quot;`')).to_mermaid()
    assert "#quot;] #lt;b#gt;#35;quot;#96;" in drawn
    assert "<b>" not in drawn
