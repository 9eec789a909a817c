"""Each trap of a graph is found before it runs, and sound graphs are left in peace."""

from __future__ import annotations

from agent_adapter.flow import (
    AgentTarget,
    AllOf,
    Always,
    AnyOf,
    ChannelFacts,
    ContextEquals,
    Finding,
    FromSpeaker,
    Not,
    RevertToInitiatorTarget,
    RoundRobinTarget,
    StayTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
    TurnCountAtLeast,
)
from tests.flow.builders import ORDER

DONE = Transition(ContextEquals("done", True), TerminateTarget("approved"))
LOOP = [
    Transition(FromSpeaker("a"), AgentTarget("b")),
    Transition(FromSpeaker("b"), AgentTarget("c")),
    Transition(FromSpeaker("c"), AgentTarget("b")),
]
PERSON = ChannelFacts(participants=ORDER, people=frozenset("a"), opener="a")


def found(graph: TransitionGraph, code: str, facts: ChannelFacts | None = None) -> list[Finding]:
    """The findings of one kind."""
    return [item for item in graph.check(facts) if item.code == code]


def codes(graph: TransitionGraph, facts: ChannelFacts | None = None) -> set[str]:
    """The kinds of findings, except what is only worth knowing."""
    return {item.code for item in graph.check(facts) if item.severity != "info"}


def test_a_feedback_loop_that_a_person_opens_is_sound() -> None:
    """The graph that people are told to write has neither errors nor warnings."""
    graph = TransitionGraph("a", [DONE, *LOOP], TerminateTarget("max_revisions"), max_turns=12)
    assert codes(graph, PERSON) == set()


def test_the_factories_are_sound() -> None:
    """A pipeline and a capped round robin have no warnings."""
    assert codes(TransitionGraph.sequence(ORDER), PERSON) == set()
    assert codes(TransitionGraph.round_robin(ORDER, max_turns=6), PERSON) == set()


def test_a_priority_the_wrong_way_round_is_found() -> None:
    """A rule that a high number puts behind the plain ones is named with those before it."""
    wrong = Transition(DONE.when, DONE.then, priority=100)
    finding = found(TransitionGraph("a", [wrong, *LOOP], max_turns=9), "priority-reversed")[0]
    assert finding.where == "transitions[0]"
    assert "after transitions[1], transitions[2], transitions[3]" in finding.message
    assert "below 0" in finding.fix


def test_a_priority_that_changes_nothing_is_no_mistake() -> None:
    """A later rule for another speaker may have any number."""
    other = Transition(AllOf([FromSpeaker("c"), ToolCalled("t")]), TerminateTarget("x"), 5)
    graph = TransitionGraph("a", [LOOP[0], LOOP[1], other], max_turns=9)
    assert not found(graph, "priority-reversed")


def test_a_sticky_variable_is_found() -> None:
    """A rule that sends the turn back to whoever just had it is named."""
    rule = Transition(ContextEquals("route", "x"), AgentTarget("c"))
    finding = found(TransitionGraph("a", [rule, LOOP[0]]), "sticky-context")[0]
    assert finding.where == "transitions[0]"
    assert "FromSpeaker('c')" in finding.fix


def test_a_rule_on_the_speaker_first_unsticks_a_variable() -> None:
    """With the way out listed before it the rule is sound."""
    rules = [
        Transition(FromSpeaker("c"), TerminateTarget("handled")),
        Transition(ContextEquals("route", "x"), AgentTarget("c")),
    ]
    assert not found(TransitionGraph("a", rules), "sticky-context")


def test_a_variable_tied_to_another_speaker_does_not_stick() -> None:
    """A condition that also asks who spoke does not repeat itself."""
    for only in (FromSpeaker("a"), Not(FromSpeaker("c"))):
        when = AllOf([only, ContextEquals("route", "x")])
        graph = TransitionGraph("a", [Transition(when, AgentTarget("c"))])
        assert not found(graph, "sticky-context")


def test_a_sticky_return_to_the_opener_is_found() -> None:
    """Reverting to the opener sticks as a named participant does."""
    rule = Transition(ContextEquals("stuck", True), RevertToInitiatorTarget())
    assert found(TransitionGraph("a", [rule]), "sticky-context", PERSON)


def test_a_shadowed_default_is_found() -> None:
    """A default that no turn can reach is worth knowing, with the reason that never comes."""
    graph = TransitionGraph("a", LOOP, TerminateTarget("never"), max_turns=10)
    finding = found(graph, "shadowed-default")[0]
    assert finding.severity == "info"
    assert "'never'" in finding.message
    assert found(TransitionGraph.round_robin(ORDER, max_turns=6), "shadowed-default")
    assert not found(TransitionGraph.sequence(ORDER), "shadowed-default")


def test_an_unreachable_rule_is_found() -> None:
    """A rule behind one that always fires first never decides."""
    rules = [Transition(Always(), AgentTarget("b")), LOOP[1]]
    finding = found(TransitionGraph("a", rules), "unreachable-transition")[0]
    assert finding.where == "transitions[1]"
    assert "transitions[0] always fires first" in finding.message


def test_rules_for_every_speaker_shadow_what_follows() -> None:
    """Together they leave no turn for a later rule."""
    graph = TransitionGraph("a", [*LOOP, DONE], max_turns=9)
    finding = found(graph, "unreachable-transition", PERSON)[0]
    assert finding.where == "transitions[3]"
    assert "together" in finding.message


def test_a_narrower_rule_first_shadows_nothing() -> None:
    """A rule that needs more leaves turns to one that needs less."""
    narrow = Transition(AllOf([FromSpeaker("a"), ToolCalled("t")]), AgentTarget("c"))
    assert not found(TransitionGraph("a", [narrow, LOOP[0]]), "unreachable-transition")


def test_a_graph_without_an_end_is_found() -> None:
    """No limit and no reachable end: the channel runs for ever."""
    [finding] = found(TransitionGraph("a", LOOP, TerminateTarget("never")), "no-way-to-end")
    assert finding.severity == "warning", "the opener may want it"
    assert all(word in finding.fix for word in ("max_turns", "TerminateTarget", "unbounded"))
    assert found(TransitionGraph.round_robin(ORDER), "no-way-to-end")
    assert not found(TransitionGraph("a", LOOP, max_turns=9), "no-way-to-end")
    assert not found(TransitionGraph("a", [DONE, *LOOP]), "no-way-to-end")


def test_an_opener_may_want_no_end() -> None:
    """A channel that says so may have a graph that runs for ever."""
    facts = ChannelFacts(participants=ORDER, unbounded=True)
    assert not found(TransitionGraph.round_robin(ORDER), "no-way-to-end", facts)


def test_a_pair_that_never_ends_is_found() -> None:
    """An end that only others reach does not end the talk of two."""
    rules = [
        Transition(AllOf([FromSpeaker("a"), ToolCalled("stop")]), TerminateTarget("stopped")),
        *LOOP,
    ]
    [finding] = found(TransitionGraph("a", rules), "endless-loop")
    assert "once b, c has the turn" in finding.message
    assert not found(TransitionGraph("a", rules), "no-way-to-end")
    assert not found(TransitionGraph("a", rules, max_turns=5), "endless-loop")


def test_a_condition_that_may_become_true_is_a_way_out() -> None:
    """A variable, a tool or a number of turns may end a loop; a rule behind `Always` never does."""
    for when in (ContextEquals("done", True), ToolCalled("stop"), TurnCountAtLeast(5)):
        out = Transition(when, TerminateTarget("out"))
        assert not found(TransitionGraph("a", [out, *LOOP]), "endless-loop")
        late = [Transition(Always(), RoundRobinTarget()), out]
        assert found(TransitionGraph("a", late), "no-way-to-end")


def test_stay_revert_and_round_robin_are_followed() -> None:
    """Each leads to a speaker that the facts name."""
    facts = ChannelFacts(participants=ORDER, opener="a")
    end = Transition(FromSpeaker("c"), TerminateTarget("c_spoke"))
    round_ = Transition(Always(), RoundRobinTarget())
    assert not found(TransitionGraph("a", [end, round_]), "no-way-to-end", facts)
    stays = Transition(FromSpeaker("b"), StayTarget())
    assert found(TransitionGraph("a", [stays, end, round_]), "no-way-to-end", facts)
    back = Transition(FromSpeaker("b"), RevertToInitiatorTarget())
    assert found(TransitionGraph("a", [back, end, round_]), "no-way-to-end", facts)


def test_nested_conditions_on_the_speaker_are_followed() -> None:
    """Who spoke decides, however the conditions are nested."""
    others = Transition(Not(AnyOf([FromSpeaker("a"), FromSpeaker("b")])), TerminateTarget("c"))
    pair = [
        Transition(FromSpeaker("a"), AgentTarget("b")),
        Transition(FromSpeaker("b"), AgentTarget("a")),
    ]
    assert found(TransitionGraph("a", [others, *pair]), "no-way-to-end")
    assert not found(TransitionGraph("c", [others, *pair]), "no-way-to-end")


def test_a_swallowed_kickoff_is_found() -> None:
    """An agent that opens and speaks first is never asked for that turn."""
    facts = ChannelFacts(participants=ORDER, opener="a", names={"a": "drafter"})
    finding = found(TransitionGraph.sequence(ORDER), "kickoff-is-first-turn", facts)[0]
    assert finding.severity == "warning"
    assert "drafter (a)" in finding.message
    assert "register_human" in finding.fix


def test_a_kickoff_is_only_hinted_at_when_the_opener_is_unknown() -> None:
    """Of a graph alone it cannot be told whether a person speaks first."""
    finding = found(TransitionGraph.sequence(ORDER), "kickoff-is-first-turn")[0]
    assert finding.severity == "info"


def test_an_opener_who_is_not_expected_is_found() -> None:
    """Their first text takes no turn: it is what the first speaker answers."""
    facts = ChannelFacts(participants=ORDER, opener="b")
    [finding] = found(TransitionGraph.sequence(ORDER), "opener-cannot-speak", facts)
    assert finding.severity == "info" and "brief" in finding.message


def test_a_name_in_place_of_an_id_is_found() -> None:
    """Targets take ids; the fix names the right one."""
    facts = ChannelFacts(participants=ORDER, names={"b": "writer"})
    graph = TransitionGraph("a", [Transition(FromSpeaker("a"), AgentTarget("writer"))])
    finding = found(graph, "name-for-id", facts)[0]
    assert (finding.severity, finding.where) == ("error", "transitions[0].then")
    assert "'b'" in finding.fix


def test_strangers_inside_composed_conditions_are_found() -> None:
    """Ids are looked for at every depth."""
    when = AllOf([Not(FromSpeaker("zoe")), Always()])
    graph = TransitionGraph("a", [Transition(when, AgentTarget("b"))])
    assert found(graph, "unknown-participant", ChannelFacts(participants=ORDER))


def test_a_comparison_with_none_is_found() -> None:
    """It is true from the first turn unless the channel opens with the key."""
    graph = TransitionGraph("a", [Transition(ContextEquals("k", None), TerminateTarget("x"))])
    assert found(graph, "matches-missing-key")
    facts = ChannelFacts(context_vars={"k": 1})
    assert not found(graph, "matches-missing-key", facts)


def test_an_open_key_that_leads_to_a_privileged_participant_is_found() -> None:
    """Whoever sets it gives them the turn; a list of writers closes it."""
    rules = [
        Transition(FromSpeaker("c"), TerminateTarget("paid")),
        Transition(ContextEquals("pay", True), AgentTarget("c")),
    ]
    graph = TransitionGraph("a", rules)
    facts = ChannelFacts(privileged=frozenset("c"))
    assert found(graph, "open-route-to-privileged", facts)[0].where == "transitions[1]"
    closed = ChannelFacts(privileged=frozenset("c"), context_acl={"pay": ["Ann"]})
    assert not found(graph, "open-route-to-privileged", closed)


def test_somebody_who_never_speaks_is_worth_knowing() -> None:
    """No rule gives them the turn; a handoff still may."""
    facts = ChannelFacts(participants=ORDER)
    finding = found(TransitionGraph.sequence(["a", "b"]), "never-speaks", facts)[0]
    assert (finding.severity, finding.message) == ("info", "no rule gives the turn to c")
    turning = TransitionGraph("a", [Transition(Always(), RoundRobinTarget())], max_turns=3)
    assert not found(turning, "never-speaks", facts)


def test_a_limit_broken_later_is_found() -> None:
    """A graph can be changed after it was made."""
    graph = TransitionGraph("a")
    graph.max_turns = 0
    assert found(graph, "bad-max-turns")


def test_errors_come_first_and_read_as_sentences() -> None:
    """A finding says what, where, why and what to do."""
    graph = TransitionGraph("zoe", LOOP)
    findings = graph.check(ChannelFacts(participants=ORDER))
    assert findings[0].severity == "error"
    assert str(findings[0]) == (
        "error unknown-participant at initial_speaker: 'zoe' does not take part in the channel. "
        "Fix: use the id of a participant: a, b, c"
    )
