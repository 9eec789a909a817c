"""What one accepted envelope does to a channel, point by point of its rules."""

from __future__ import annotations

import copy

import pytest

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow import (
    AgentTarget,
    AllOf,
    Always,
    AnyOf,
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
    TransitionRegistry,
    TurnCountAtLeast,
    WorkflowState,
    compile_graph,
    fold,
)
from tests.flow.builders import context_set, ending, folded, opened, packet, text

END = TerminateTarget("end")


def test_point_2_the_first_send_is_the_initial_speakers_turn() -> None:
    """The opener's first message counts as a turn and routes on."""
    state = folded(TransitionGraph.sequence(["a", "b", "c"]), text("a"))
    assert (state.turn_count, state.last_speaker_id, state.expected_next_speaker) == (1, "a", "b")


def test_point_4_a_lower_priority_is_looked_at_first() -> None:
    """Of two rules that fire, the one with the lower number decides."""
    late, soon = Transition(Always(), AgentTarget("b"), 1), Transition(Always(), AgentTarget("c"))
    assert folded(TransitionGraph("a", [late, soon]), text("a")).expected_next_speaker == "c"


def test_point_4_a_negative_priority_comes_before_the_default_one() -> None:
    """A rule with priority -1 is looked at before rules that name none."""
    rules = [Transition(Always(), AgentTarget("b")), Transition(Always(), AgentTarget("c"), -1)]
    assert folded(TransitionGraph("a", rules), text("a")).expected_next_speaker == "c"


def test_point_4_rules_of_one_priority_keep_their_order() -> None:
    """Ties are decided by the place in the list."""
    rules = [Transition(Always(), AgentTarget(target), 5) for target in ("c", "b")]
    assert folded(TransitionGraph("a", rules), text("a")).expected_next_speaker == "c"


def test_point_4_the_default_decides_when_no_rule_fires() -> None:
    """Without a rule that fires the default target is asked."""
    graph = TransitionGraph("a", [Transition(FromSpeaker("b"), AgentTarget("c"))], END)
    assert ending(graph, text("a")) == "end"


def test_point_4_context_changes_come_before_routing() -> None:
    """A rule sees what the same packet set."""
    graph = TransitionGraph("a", [Transition(ContextEquals("k", 1), AgentTarget("c"))], END)
    assert folded(graph, packet("a", set={"k": 1})).expected_next_speaker == "c"


def test_point_4_bookkeeping_comes_before_routing() -> None:
    """A rule on the number of turns counts the turn that it decides about."""
    graph = TransitionGraph("a", [Transition(TurnCountAtLeast(1), AgentTarget("c"))], END)
    assert folded(graph, text("a")).expected_next_speaker == "c"


def test_point_4_deletions_come_before_what_is_set() -> None:
    """A key that is deleted and set in one change holds what was set."""
    state = folded(
        TransitionGraph("a"), context_set("b", set={"k": 2}, delete=["k", "old"]), k=1, old=1
    )
    assert state.context_vars == {"k": 2}


def test_point_4_finish_ends_the_channel_before_any_rule() -> None:
    """A packet routed by Finish closes with its reason."""
    graph = TransitionGraph("a", [Transition(Always(), AgentTarget("b"))])
    assert ending(graph, packet("a", {"kind": "finish", "reason": "solved"})) == "solved"


def test_point_4_finish_without_a_reason_says_finished() -> None:
    """An empty reason becomes `finished`."""
    assert ending(TransitionGraph("a"), packet("a", {"kind": "finish"})) == "finished"


def test_point_4_a_handoff_comes_before_any_rule() -> None:
    """A packet routed by a Handoff goes to its target whatever the rules say."""
    graph = TransitionGraph("a", [Transition(ToolCalled("t"), AgentTarget("b"))])
    routing = {"kind": "handoff", "tool": "t", "target": "c"}
    assert folded(graph, packet("a", routing)).expected_next_speaker == "c"


def test_point_4_a_routing_tool_is_matched_by_the_rules() -> None:
    """A packet that names a tool and no target goes where ToolCalled says."""
    graph = TransitionGraph("a", [Transition(ToolCalled("t"), AgentTarget("b"))], END)
    assert folded(graph, packet("a", {"kind": "handoff", "tool": "t"})).expected_next_speaker == "b"
    assert ending(graph, packet("a", {"kind": "handoff", "tool": "other"})) == "end"


def test_point_4_a_text_calls_no_tool() -> None:
    """ToolCalled never fires on a text, whatever it carries."""
    graph = TransitionGraph("a", [Transition(ToolCalled("t"), AgentTarget("b"))], END)
    forged = Envelope("ch", "a", None, text("a").event_type, {"routing": {"tool": "t"}})
    assert ending(graph, forged) == "end"


def test_point_5_a_target_ends_the_channel_with_its_reason() -> None:
    """TerminateTarget's reason is the channel's."""
    assert ending(TransitionGraph("a", [Transition(Always(), END)]), text("a")) == "end"


def test_point_5_an_empty_reason_still_ends_the_channel() -> None:
    """A target without a reason closes as `workflow_terminated`."""
    assert ending(TransitionGraph("a", [], TerminateTarget("")), text("a")) == (
        "workflow_terminated"
    )


def test_point_5_max_turns_closes_the_channel() -> None:
    """Reaching the limit closes as `max_turns` and does not ask the default target."""
    graph = TransitionGraph("a", [Transition(Always(), StayTarget())], END, max_turns=2)
    assert ending(graph, text("a")) is None
    assert ending(graph, text("a"), text("a")) == "max_turns"


def test_point_5_a_reason_of_the_graph_wins_over_max_turns() -> None:
    """When both fall on one turn the graph's reason is the channel's."""
    graph = TransitionGraph.sequence(["a", "b"])
    assert graph.max_turns == 2
    assert ending(graph, text("a"), text("b")) == "sequence_complete"


def test_a_round_robin_ends_by_its_limit_alone() -> None:
    """Its default is never reached: six turns of three participants end as `max_turns`."""
    graph = TransitionGraph.round_robin(["a", "b", "c"], max_turns=6)
    turns = [text(sender) for sender in "abcabc"]
    assert ending(graph, *turns[:5]) is None
    assert ending(graph, *turns) == "max_turns"


def test_context_equals_is_sticky() -> None:
    """A rule on a variable fires on every later turn until the variable changes."""
    graph = TransitionGraph("a", [Transition(ContextEquals("r", "b"), AgentTarget("b"))], END)
    turns = [packet("a", set={"r": "b"}), text("b"), text("b")]
    assert folded(graph, *turns).expected_next_speaker == "b"
    assert ending(graph, *turns, context_set("b", delete=["r"]), text("b")) == "end"


def test_a_missing_key_equals_none() -> None:
    """ContextEquals with None fires for a variable that was never set."""
    graph = TransitionGraph("a", [Transition(ContextEquals("k", None), AgentTarget("b"))], END)
    assert folded(graph, text("a")).expected_next_speaker == "b"


def test_a_context_change_takes_no_turn() -> None:
    """Between turns variables change and nothing else does."""
    before = opened(TransitionGraph.sequence(["a", "b"]))
    after = fold(context_set("b", set={"k": [1]}), before)
    assert (after.turn_count, after.expected_next_speaker) == (0, "a")
    assert (after.context_vars, before.context_vars) == ({"k": [1]}, {})


@pytest.mark.parametrize("event", ["ag2.channel.closed", "ag2.task.cancelled", "own.event"])
def test_other_events_change_nothing(event: str) -> None:
    """Events that are no turn leave the state as it is."""
    state = opened(TransitionGraph("a"))
    assert fold(Envelope("ch", "a", None, event, {}), state) is state


def test_targets_name_the_next_speaker() -> None:
    """Round robin goes on in order, stay stays, revert goes to the opener."""
    for target, expected in (
        (RoundRobinTarget(), "c"),
        (StayTarget(), "b"),
        (RevertToInitiatorTarget(), "a"),
    ):
        graph = TransitionGraph("b", [Transition(Always(), target)])
        assert folded(graph, text("b")).expected_next_speaker == expected


def test_a_round_robin_starts_again_after_the_last() -> None:
    """After the last participant comes the first."""
    graph = TransitionGraph("c", [Transition(Always(), RoundRobinTarget())])
    assert folded(graph, text("c")).expected_next_speaker == "a"


def test_conditions_compose() -> None:
    """AllOf needs all, AnyOf one, Not none."""
    state, envelope = WorkflowState(turn_count=2), text("a")
    yes, no = FromSpeaker("a"), FromSpeaker("b")
    assert AllOf([yes, TurnCountAtLeast(2)]).evaluate(state, envelope)
    assert not AllOf([yes, no]).evaluate(state, envelope)
    assert AnyOf([no, yes]).evaluate(state, envelope)
    assert not AnyOf([no, TurnCountAtLeast(3)]).evaluate(state, envelope)
    assert Not(no).evaluate(state, envelope)


def test_folding_leaves_the_state_before_alone() -> None:
    """A state that was folded from can be folded from again."""
    before = opened(TransitionGraph.sequence(["a", "b"]), k=1)
    kept = copy.deepcopy(before)
    first = fold(packet("a", set={"k": 2}, delete=["k"]), before)
    assert before == kept
    assert fold(packet("a", set={"k": 2}, delete=["k"]), before) == first


def test_a_compiled_graph_gives_the_same_state() -> None:
    """Passing the compiled graph saves the look-up and changes nothing."""
    state = opened(TransitionGraph.sequence(["a", "b"]))
    compiled = compile_graph(state.graph_data)
    assert fold(text("a"), state, compiled) == fold(text("a"), state)


def test_equal_graphs_are_compiled_once() -> None:
    """The compiled form is found by content, not by object."""
    graph = TransitionGraph.sequence(["a", "b"])
    assert compile_graph(graph.to_dict()) is compile_graph(graph.to_dict())


def test_a_registration_forgets_what_was_compiled() -> None:
    """After a class was replaced, graphs are compiled with the new one."""
    registry = TransitionRegistry()
    data = TransitionGraph.sequence(["a", "b"]).to_dict()
    before = compile_graph(data, registry)

    class Other(FromSpeaker):
        name = "other"

    registry.register_condition(Other)
    assert compile_graph(data, registry) is not before


def test_an_own_condition_that_raises_is_named() -> None:
    """The error says which transition raised, and nothing is decided."""
    registry = TransitionRegistry()

    class Broken(Always):
        name = "broken"

        def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
            raise ZeroDivisionError("no")

    registry.register_condition(Broken)
    graph = TransitionGraph("a", [Transition(Broken(), END)])
    compiled = compile_graph(graph.to_dict(), registry)
    state = WorkflowState(["a", "b"], "a", graph_data=graph.to_dict())
    with pytest.raises(WorkflowGraphError, match=r"transitions\[0\] \(broken → terminate\)"):
        fold(text("a"), state, compiled)
