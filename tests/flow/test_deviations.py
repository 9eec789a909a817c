"""Where a channel here behaves otherwise than one of AG2, on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError, ToolError, WorkflowGraphError
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.flow import (
    AgentTarget,
    AllOf,
    Always,
    ChannelFacts,
    ContextEquals,
    Envelope,
    FromSpeaker,
    RoundCall,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionDecision,
    TransitionGraph,
    TransitionRegistry,
    WorkflowState,
    check_send,
    close_reason,
    compile_graph,
    fold,
    opening_state,
    resolved_handoff,
    round_routing,
)
from tests.flow.builders import ORDER, folded, opened, packet, text

NAMES = {"Ann": "a", "Bob": "b", "Cy": "c"}
NO_TOOLS: frozenset[str] = frozenset()


def test_deviation_1_calls_that_failed_do_not_route() -> None:
    """A denied or failed call of a routing tool leaves the turn to the next call."""
    calls = [RoundCall(tool="up", ok=False), RoundCall(tool="down")]
    assert round_routing(calls, frozenset({"up", "down"}), NAMES)["tool"] == "down"


def test_deviation_2_a_handoff_to_an_unknown_name_is_an_error_of_the_tool() -> None:
    """The model reads who there is, in the same round."""
    with pytest.raises(ToolError, match="'Zoe': the channel's participants are Ann, Bob, Cy"):
        resolved_handoff("Zoe", NAMES)


def test_deviation_2_a_packet_for_a_stranger_is_refused() -> None:
    """A target that is no participant's id is not accepted."""
    state = opened(TransitionGraph("a", [Transition(Always(), AgentTarget("b"))]))
    forged = packet("a", {"kind": "handoff", "tool": "t", "target": "zoe"})
    with pytest.raises(ProtocolError, match=r"routing\.target 'zoe' is no participant"):
        check_send(forged, state)


def test_deviation_2_a_logged_target_that_is_a_stranger_is_passed_over() -> None:
    """The fold never makes a channel wait for somebody who does not exist."""
    graph = TransitionGraph("a", [Transition(Always(), AgentTarget("b"))])
    forged = packet("a", {"kind": "handoff", "tool": "t", "target": "zoe"})
    assert folded(graph, forged).expected_next_speaker == "b"


def test_deviation_3_tool_called_routes_inside_other_conditions() -> None:
    """A tool that only a composed rule names routes as well."""
    rule = Transition(AllOf([FromSpeaker("a"), ToolCalled("t")]), AgentTarget("b"))
    assert TransitionGraph("a", [rule]).tool_names() == {"t"}


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3"])
def test_deviation_4_max_turns_is_a_whole_number_from_one(limit: Any) -> None:
    """Anything else is refused when the graph is made and when it is loaded."""
    with pytest.raises(WorkflowGraphError, match="max_turns is a whole number from 1"):
        TransitionGraph("a", max_turns=limit)
    with pytest.raises(WorkflowGraphError, match="max_turns is a whole number from 1"):
        TransitionGraph.loads({"initial_speaker": "a", "max_turns": limit})


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        (TransitionGraph("zoe"), "unknown-participant"),
        (TransitionGraph("a", [Transition(Always(), AgentTarget("zoe"))]), "unknown-participant"),
        (TransitionGraph("a", [Transition(FromSpeaker("zoe"), AgentTarget("a"))]), "unknown"),
        (TransitionGraph("a", [], AgentTarget("zoe")), "unknown-participant at default_target"),
        (TransitionGraph("a", [Transition(Always(), AgentTarget("Bob"))]), "name-for-id"),
    ],
)
def test_deviation_5_a_graph_that_names_a_stranger_does_not_open(
    graph: TransitionGraph, code: str
) -> None:
    """Opening refuses it and names the place and the fix."""
    facts = ChannelFacts(participants=ORDER, names={item: name for name, item in NAMES.items()})
    with pytest.raises(ProtocolError, match=code):
        opening_state({"graph": graph.to_dict()}, facts, creator_id="a")


def test_deviation_5_a_participant_is_listed_once() -> None:
    """Somebody who takes part twice is refused."""
    facts = ChannelFacts(participants=["a", "b", "b"])
    with pytest.raises(ProtocolError, match="duplicate-participant"):
        opening_state({"graph": TransitionGraph("a").to_dict()}, facts, creator_id="a")


def test_deviation_6_nobody_may_speak_after_the_end() -> None:
    """Where nobody is expected every turn is refused."""
    ended = folded(TransitionGraph("a"), text("a"))
    with pytest.raises(ProtocolError, match="expects no one"):
        check_send(text("a"), ended)


def test_deviation_6_a_stranger_may_send_nothing() -> None:
    """Events that are no turn are refused from outside as well."""
    state = opened(TransitionGraph("a"))
    with pytest.raises(ProtocolError, match="'zoe' does not take part"):
        check_send(Envelope("ch", "zoe", None, "own.event", {}), state)


class Nowhere(TerminateTarget):
    """Decides for somebody who does not take part."""

    name = "nowhere"

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """A stranger."""
        return TransitionDecision("zoe")


def test_deviation_7_an_own_target_that_names_a_stranger_ends_the_channel() -> None:
    """The channel closes as `unknown_speaker` instead of waiting for nobody."""
    registry = TransitionRegistry()
    registry.register_target(Nowhere)
    data = TransitionGraph("a", [], Nowhere()).to_dict()
    state = fold(text("a"), WorkflowState(ORDER, "a"), compile_graph(data, registry))
    assert (state.expected_next_speaker, state.pending_close_reason) == (None, "unknown_speaker")


@pytest.mark.parametrize("routing", ["x", {"kind": "jump"}, {"kind": "handoff", "tool": 1}])
def test_deviation_8_malformed_routing_is_refused_and_never_folded(routing: Any) -> None:
    """Accepting refuses it; a log that holds one folds as if it were absent."""
    graph = TransitionGraph("a", [Transition(Always(), AgentTarget("b"))])
    bad = packet("a")
    bad.event_data["routing"] = routing
    with pytest.raises(ProtocolError, match="malformed"):
        check_send(bad, opened(graph))
    assert folded(graph, bad).expected_next_speaker == "b"


def test_deviation_9_a_graph_with_unknown_parts_does_not_load() -> None:
    """A misspelt field is an error, never ignored."""
    with pytest.raises(WorkflowGraphError, match="the unknown max_turn; its fields are"):
        TransitionGraph.loads({"initial_speaker": "a", "max_turn": 3})


def test_deviation_10_a_built_in_name_is_not_taken_over() -> None:
    """Registering an own class under a built-in's name is refused."""

    class Mine(Always):
        pass

    with pytest.raises(WorkflowGraphError, match="'always' is a built-in condition"):
        TransitionRegistry().register_condition(Mine)


def test_deviation_11_a_compared_value_is_json() -> None:
    """What could never equal a stored variable is refused; a tuple is its list."""
    assert ContextEquals("k", (1, 2)).value == [1, 2]
    with pytest.raises(WorkflowGraphError, match="JSON cannot carry"):
        ContextEquals("k", {1, 2})


STEPS = ["user", "drafter", "reviewer", "drafter", "editor"]


def _speakers(steps: list[str]) -> tuple[list[str], str | None]:
    """Who speaks in the sequence, each with a text, and why the channel closes."""
    graph = TransitionGraph.sequence(steps)
    state = opened(graph, sorted(set(steps)))
    spoken: list[str] = []
    while close_reason(state) is None and len(spoken) < 20:
        speaker = state.expected_next_speaker or ""
        spoken.append(speaker)
        state = fold(text(speaker), state)
    return spoken, close_reason(state)


@pytest.mark.parametrize(
    "steps",
    [STEPS, ["a", "b", "a"], ["a", "a", "b"], ["a", "b", "a", "b", "a"], ["a", "b"]],
)
def test_deviation_12_a_sequence_has_one_turn_per_step(steps: list[str]) -> None:
    """N8: whoever has several steps speaks at each of them, and the last one ends the channel."""
    assert _speakers(steps) == (steps, "sequence_complete")


def test_deviation_12_a_sequence_without_repetition_is_as_ag2_writes_it() -> None:
    """Only the rules of a participant with several steps count turns."""
    rules = TransitionGraph.sequence(STEPS).to_dict()["transitions"]
    assert [rule["when"]["name"] for rule in rules] == [
        "from_speaker",
        "all_of",
        "from_speaker",
        "from_speaker",
    ]
    plain = TransitionGraph.sequence(["a", "b", "c"]).to_dict()["transitions"]
    assert {rule["when"]["name"] for rule in plain} == {"from_speaker"}


def test_the_first_routing_call_wins() -> None:
    """Calls are walked in the model's order."""
    calls = [
        RoundCall(tool="look"),
        RoundCall(tool="pass", result=Handoff("Bob", "busy")),
        RoundCall(tool="stop", result=Finish("all done")),
    ]
    assert round_routing(calls, NO_TOOLS, NAMES) == {
        "kind": "handoff",
        "tool": "pass",
        "reason": "busy",
        "target": "b",
    }


def test_within_one_call_finish_comes_first() -> None:
    """Finish beats Handoff, and Handoff beats the rule on the tool."""
    both = RoundCall(tool="t", result=[Handoff("Bob"), Finish("s", "r")])
    assert round_routing([both], frozenset({"t"}), NAMES)["kind"] == "finish"
    typed = RoundCall(tool="t", result=Handoff("Bob"))
    assert round_routing([typed], frozenset({"t"}), NAMES)["target"] == "b"


def test_a_routing_tools_reason_is_carried() -> None:
    """The model's `reason` argument travels with the routing."""
    call = RoundCall(tool="t", arguments={"reason": "too hard"})
    assert round_routing([call], frozenset({"t"}), NAMES) == {
        "kind": "handoff",
        "tool": "t",
        "reason": "too hard",
    }


def test_no_routing_call_leaves_a_text() -> None:
    """Without one the body is all there is."""
    assert round_routing([RoundCall(tool="look")], NO_TOOLS, NAMES) == {"kind": "text"}
