"""What holds for every graph and every log."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_adapter.flow import (
    EV_CONTEXT_SET,
    EV_PACKET,
    EV_TEXT,
    AgentTarget,
    AllOf,
    Always,
    AnyOf,
    ChannelFacts,
    ContextEquals,
    Envelope,
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
    WorkflowState,
    close_reason,
    compile_graph,
    fold,
)
from agent_adapter.flow.logic import disjoint, implies
from tests.flow.builders import ORDER, opened

thorough = settings(max_examples=200, deadline=None)
ids = st.sampled_from(ORDER)
keys = st.sampled_from(["k", "l"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)  # fmt: skip
small = st.sampled_from([None, True, 1, "x"])
atoms = st.one_of(
    st.builds(Always),
    st.builds(FromSpeaker, ids),
    st.builds(ToolCalled, st.sampled_from(["t", "u"])),
    st.builds(ContextEquals, keys, small),
    st.builds(TurnCountAtLeast, st.integers(1, 3)),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)
targets = st.one_of(
    st.builds(AgentTarget, ids),
    st.builds(RoundRobinTarget),
    st.builds(StayTarget),
    st.builds(RevertToInitiatorTarget),
    st.builds(TerminateTarget, st.text(max_size=5)),
)
transitions = st.builds(Transition, conditions, targets, st.integers(-2, 2))
graphs = st.builds(
    TransitionGraph,
    ids,
    st.lists(transitions, max_size=5),
    targets,
    st.none() | st.integers(1, 5),
)
updates = st.fixed_dictionaries(
    {}, optional={"set": st.dictionaries(keys, json_values), "delete": st.lists(keys, max_size=2)}
)
routings = st.one_of(
    st.just({"kind": "text"}),
    st.fixed_dictionaries({"kind": st.just("handoff"), "tool": st.sampled_from(["t", "u"])}),
    st.fixed_dictionaries({"kind": st.just("handoff"), "tool": st.just("t"), "target": ids}),
    st.fixed_dictionaries({"kind": st.just("finish"), "reason": st.text(max_size=3)}),
)
packets = st.fixed_dictionaries(
    {"routing": routings, "context_updates": updates, "body": st.text(max_size=3)}
)
envelopes = st.one_of(
    st.builds(Envelope, st.just("ch"), ids, st.none(), st.just(EV_TEXT), st.just({"text": "x"})),
    st.builds(Envelope, st.just("ch"), ids, st.none(), st.just(EV_PACKET), packets),
    st.builds(Envelope, st.just("ch"), ids, st.none(), st.just(EV_CONTEXT_SET), updates),
)
garbage = st.dictionaries(
    st.sampled_from(["routing", "context_updates", "body", "set", "delete", "text"]),
    json_values | st.fixed_dictionaries({"kind": json_values, "target": json_values}),
)
events = st.sampled_from([EV_TEXT, EV_PACKET, EV_CONTEXT_SET, "own"])


@thorough
@given(graphs)
def test_a_graph_comes_back_from_its_wire_form(graph: TransitionGraph) -> None:
    """Writing and reading is the identity."""
    assert TransitionGraph.loads(graph.dumps()) == graph
    assert TransitionGraph.loads(graph.to_dict()).to_dict() == graph.to_dict()


@thorough
@given(graphs, st.lists(envelopes, max_size=8))
def test_a_state_can_be_stored_anywhere_in_a_log(
    graph: TransitionGraph, log: list[Envelope]
) -> None:
    """Folding on from a stored state equals folding from the beginning."""
    straight = stored = opened(graph)
    for envelope in log:
        straight = fold(envelope, straight)
        reread = WorkflowState.from_dict(stored.to_dict(graph=False), graph_data=graph.to_dict())
        stored = fold(Envelope.from_json(envelope.to_json()), reread)
        assert stored == straight


@thorough
@given(graphs, st.lists(envelopes, max_size=8))
def test_turns_are_counted_and_the_next_speaker_takes_part(
    graph: TransitionGraph, log: list[Envelope]
) -> None:
    """Every turn counts once; whoever is expected is a participant; nobody means an end."""
    state, turns = opened(graph), 0
    for envelope in log:
        state = fold(envelope, state)
        turns += envelope.event_type != EV_CONTEXT_SET
        assert state.turn_count == turns
        assert state.expected_next_speaker in (None, *ORDER)
        if state.expected_next_speaker is None:
            assert close_reason(state)
    if graph.max_turns is not None and turns >= graph.max_turns:
        assert close_reason(state) is not None


@thorough
@given(graphs, ids, events, garbage)
def test_folding_never_fails(
    graph: TransitionGraph, sender: str, event: str, data: dict[str, Any]
) -> None:
    """Whatever an envelope holds, it folds, and twice the same."""
    state = opened(graph)
    envelope = Envelope("ch", sender, None, event, data)
    assert fold(envelope, state) == fold(envelope, state)


@thorough
@given(graphs, st.lists(envelopes, min_size=1, max_size=4))
def test_what_is_called_unreachable_never_decides(
    graph: TransitionGraph, log: list[Envelope]
) -> None:
    """A rule that the check calls dead is never the first to fire."""
    findings = graph.check() + graph.check(ChannelFacts(participants=ORDER))
    dead = {
        int(item.where.removeprefix("transitions[").removesuffix("]"))
        for item in findings
        if item.code == "unreachable-transition"
    }
    state = opened(graph)
    for envelope in log:
        state = fold(envelope, state)
        fired = (rule for rule in graph.ordered() if rule.when.evaluate(state, envelope))
        first = next(fired, None)
        for index in dead:
            assert graph.transitions[index] is not first


@thorough
@given(conditions, conditions, st.lists(envelopes, min_size=1, max_size=3))
def test_what_is_told_of_conditions_holds(one: Any, other: Any, log: list[Envelope]) -> None:
    """An implied condition fires too; disjoint ones never fire together."""
    state = opened(TransitionGraph("a"))
    for envelope in log:
        state = fold(envelope, state, compile_graph(state.graph_data))
        here, there = one.evaluate(state, envelope), other.evaluate(state, envelope)
        if implies(one, other):
            assert there or not here
        if disjoint(one, other):
            assert not (here and there)
