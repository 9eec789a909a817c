"""Graphs as data: written, read, and refused where they are not what they should be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

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
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionCondition,
    TransitionDecision,
    TransitionGraph,
    TransitionRegistry,
    TransitionTarget,
    TurnCountAtLeast,
    WorkflowState,
    register_target,
)
from tests.flow.builders import ORDER, text


@dataclass(slots=True)
class Ranked(TransitionTarget):
    """The first participant of a list."""

    name: ClassVar[str] = "ranked"
    order: list[str] = field(default_factory=list)

    def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The first who takes part."""
        found = (item for item in self.order if item in state.participant_order)
        return TransitionDecision(next_speaker=next(found, None), close_reason="nobody")


@dataclass(slots=True)
class Most(TransitionCondition):
    """More than half of its conditions fire."""

    votes: list[TransitionCondition]
    name: ClassVar[str] = "most"
    nested: ClassVar[tuple[str, ...]] = ("votes",)

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether they do."""
        fired = [vote for vote in self.votes if vote.evaluate(state, envelope)]
        return len(fired) * 2 > len(self.votes)


def test_the_wire_form_names_each_part() -> None:
    """Targets and conditions are `{"name", "args"}`."""
    graph = TransitionGraph(
        "a", [Transition(ToolCalled("t"), AgentTarget("b"), -1)], TerminateTarget("end"), 7
    )
    assert graph.to_dict() == {
        "initial_speaker": "a",
        "transitions": [
            {
                "when": {"name": "tool_called", "args": {"tool_name": "t"}},
                "then": {"name": "agent", "args": {"agent_id": "b"}},
                "priority": -1,
            }
        ],
        "default_target": {"name": "terminate", "args": {"reason": "end"}},
        "max_turns": 7,
    }


def test_composed_conditions_come_back() -> None:
    """What is nested in a condition is written and read with it."""
    inner = AnyOf([Not(ContextEquals("k", {"n": [1]})), TurnCountAtLeast(3)])
    graph = TransitionGraph("a", [Transition(AllOf([FromSpeaker("a"), inner]), AgentTarget("b"))])
    assert TransitionGraph.loads(graph.dumps()) == graph


def test_parts_left_out_have_their_defaults() -> None:
    """A graph needs an initial speaker and nothing else."""
    graph = TransitionGraph.loads({"initial_speaker": "a", "default_target": None})
    assert graph == TransitionGraph("a", [], TerminateTarget("after_work"), None)


def test_the_dict_is_a_copy() -> None:
    """Changing what `to_dict` gave leaves the graph alone."""
    graph = TransitionGraph("a", [Transition(ContextEquals("k", [1]), AgentTarget("b"))])
    graph.to_dict()["transitions"][0]["when"]["args"]["value"].append(2)
    assert graph.to_dict()["transitions"][0]["when"]["args"]["value"] == [1]


def test_sequence_visits_each_step_once() -> None:
    """It has as many turns as steps and ends as `sequence_complete`."""
    graph = TransitionGraph.sequence(ORDER)
    assert (graph.initial_speaker, graph.max_turns) == ("a", 3)
    assert graph.default_target == TerminateTarget("sequence_complete")


def test_an_own_target_survives_the_wire() -> None:
    """A registered class is found again by its name, its fields are its arguments."""
    register_target(Ranked)
    graph = TransitionGraph("a", [], Ranked(["x", "b"]))
    back = TransitionGraph.loads(graph.dumps())
    assert back == graph
    state = WorkflowState(ORDER, "a")
    assert back.default_target.resolve(state, text("a")).next_speaker == "b"


def test_an_own_condition_may_hold_conditions() -> None:
    """A class that names its nested fields composes like the built-in ones."""
    registry = TransitionRegistry()
    registry.register_condition(Most)
    rule = Transition(Most([Always(), FromSpeaker("a"), FromSpeaker("b")]), AgentTarget("c"))
    graph = TransitionGraph("a", [rule])
    back = TransitionGraph.loads(graph.dumps(), registry=registry)
    assert back == graph
    assert back.transitions[0].when.evaluate(WorkflowState(ORDER), text("a"))


def test_a_registry_of_its_own_is_apart() -> None:
    """What is registered in one is unknown to another."""
    registry = TransitionRegistry()
    registry.register_condition(Most)
    assert "most" in registry.condition_names
    assert "most" not in TransitionRegistry.default().condition_names


def test_a_class_without_a_name_is_not_registered() -> None:
    """Its graphs could not be read again."""

    class Nameless:
        def resolve(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
            return TransitionDecision(None)

    with pytest.raises(WorkflowGraphError, match="has no name; give it a class-level name"):
        TransitionRegistry().register_target(Nameless)  # type: ignore[type-var]  # the point


def test_a_class_that_would_lose_its_arguments_is_not_registered() -> None:
    """Only a dataclass says which arguments it was made with."""

    class Plain:
        name = "plain"

        def __init__(self, who: str) -> None:
            self.who = who

        def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
            return envelope.sender_id == self.who

    with pytest.raises(WorkflowGraphError, match="is not a dataclass"):
        TransitionRegistry().register_condition(Plain)  # type: ignore[type-var]  # the point


def test_point_11_an_unknown_name_is_an_error() -> None:
    """It names the place, what is known and what to do; nothing is guessed."""
    data = TransitionGraph("a", [Transition(Always(), AgentTarget("b"))]).to_dict()
    data["transitions"][0]["then"]["name"] = "agnet"
    with pytest.raises(WorkflowGraphError) as caught:
        TransitionGraph.loads(data)
    said = str(caught.value)
    assert "transitions[0]: no transition target is registered under 'agnet'" in said
    assert "did you mean 'agent'?" in said
    assert "revert_to_initiator" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{", "the graph is not JSON"),
        ("[]", "the graph is an object"),
        ({}, "the graph lacks initial_speaker"),
        ({"initial_speaker": ""}, "initial_speaker is a participant's id"),
        ({"initial_speaker": "a", "transitions": {}}, "transitions is a list"),
        (
            {"initial_speaker": "a", "transitions": [1]},
            r"transitions\[0\]: the transition is an obj",
        ),
        ({"initial_speaker": "a", "transitions": [{"when": {}}]}, "the transition lacks then"),
        (
            {"initial_speaker": "a", "default_target": "terminate"},
            "the target is an object, not str; its fields are name, args",
        ),
        ({"initial_speaker": "a", "default_target": {"name": "agent"}}, "lacks its argument"),
        (
            {"initial_speaker": "a", "default_target": {"name": "agent", "args": {"id": "b"}}},
            "no argument 'id'",
        ),
        (
            {"initial_speaker": "a", "default_target": {"name": "terminate", "reason": "x"}},
            "its arguments belong in args",
        ),
    ],
)
def test_a_malformed_graph_says_what_is_wrong(data: Any, said: str) -> None:
    """Each error names the place and what was expected."""
    with pytest.raises(WorkflowGraphError, match=said):
        TransitionGraph.loads(data)


@pytest.mark.parametrize("priority", [True, 1.5, "0", None])
def test_a_priority_is_a_whole_number(priority: Any) -> None:
    """Anything else is refused when the transition is made."""
    with pytest.raises(WorkflowGraphError, match=r"Transition\.priority is a whole number"):
        Transition(Always(), AgentTarget("b"), priority)


def test_a_participant_in_place_of_its_id_is_explained() -> None:
    """The error says to pass the id of the client."""

    class Client:
        agent_id = "a"

    with pytest.raises(WorkflowGraphError, match=r"pass its \.agent_id"):
        AgentTarget(Client())  # type: ignore[arg-type]  # the point


def test_an_empty_composition_is_refused() -> None:
    """AllOf and AnyOf hold at least one condition."""
    with pytest.raises(WorkflowGraphError, match="AllOf takes a list of at least one condition"):
        AllOf([])


def test_nesting_has_a_limit() -> None:
    """A graph of absurd depth is refused instead of exhausting the stack."""
    condition: dict[str, Any] = {"name": "always", "args": {}}
    for _ in range(40):
        condition = {"name": "not", "args": {"condition": condition}}
    rule = {"when": condition, "then": {"name": "stay"}}
    with pytest.raises(WorkflowGraphError, match="levels deep"):
        TransitionGraph.loads(json.dumps({"initial_speaker": "a", "transitions": [rule]}))


def test_an_empty_sequence_is_refused() -> None:
    """A factory needs at least one id, and a single text is not a list of them."""
    for steps in ([], "abc"):
        with pytest.raises(WorkflowGraphError, match="sequence takes a list of at least one"):
            TransitionGraph.sequence(steps)
