"""Envelopes, states and variables as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError, WorkflowGraphError
from agent_adapter.flow import (
    ChannelFacts,
    Envelope,
    TransitionGraph,
    WorkflowState,
    check_send,
    is_turn,
    opening_state,
    packet_data,
    visible_to,
)
from agent_adapter.flow.context_vars import CHANNEL_LIMIT, VALUE_LIMIT, check_updates, writers_of
from tests.flow.builders import context_set, folded, opened, packet, text

GOOD = text("a").to_dict()


def test_an_envelope_comes_back_from_json() -> None:
    """Every field survives, and equal envelopes are equal text."""
    message = Envelope("ch", "a", ["b"], "own", {"x": [1, {"y": None}]}, "e9", depth=3)
    assert Envelope.from_json(message.to_json()) == message
    assert Envelope.from_dict(message.to_dict()).to_json() == message.to_json()


def test_fields_left_out_have_their_defaults() -> None:
    """Only the first five fields are needed."""
    data = {name: GOOD[name] for name in list(GOOD)[:5]}
    assert Envelope.from_dict(data).priority == "normal"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sender_id": 1}, "sender_id: Input should be a valid string"),
        ({"audience": "b"}, "audience: Input should be a valid list"),
        ({"audience": [1]}, "audience.0: Input should be a valid string"),
        ({"event_data": []}, "event_data: Input should be a valid dictionary"),
        ({"depth": True}, "depth: Input should be a valid integer"),
        ({"priority": "now"}, "priority: Input should be 'background', 'normal' or 'urgent'"),
        ({"sneder": "a"}, "sneder: Unexpected keyword argument"),
    ],
)
def test_a_malformed_envelope_says_what_is_wrong(change: dict[str, Any], said: str) -> None:
    """The error names the field and what belongs there."""
    with pytest.raises(ProtocolError, match=said):
        Envelope.from_dict(GOOD | change)


@pytest.mark.parametrize("raw", ["", "[]", "[" * 100_000, "{}"])
def test_what_is_no_envelope_is_refused(raw: str) -> None:
    """Text that is not one JSON object with the needed fields is an error."""
    with pytest.raises(ProtocolError):
        Envelope.from_json(raw)


def test_event_data_that_is_not_json_is_refused() -> None:
    """It is found when the envelope is written."""
    with pytest.raises(ProtocolError, match="not JSON"):
        text("a", {1, 2}).to_json()  # type: ignore[arg-type]  # the point
    with pytest.raises(ProtocolError, match="JSON cannot carry"):
        text("a", {1, 2}).to_dict()  # type: ignore[arg-type]  # the point


def test_the_dict_of_an_envelope_is_a_copy() -> None:
    """Changing it leaves the envelope alone."""
    message = packet("a", set={"k": 1})
    message.to_dict()["event_data"]["context_updates"]["set"]["k"] = 2
    assert message.event_data["context_updates"]["set"] == {"k": 1}


def test_texts_and_packets_are_turns() -> None:
    """Nothing else uses up a turn."""
    assert is_turn(text("a"))
    assert is_turn(packet("a"))
    assert not is_turn(context_set("a"))


def test_an_audience_limits_who_sees() -> None:
    """Without one everybody does; with one, those listed and the sender."""
    listed = Envelope("ch", "a", ["b"], "own", {})
    assert [visible_to(listed, item) for item in "abc"] == [True, True, False]
    assert visible_to(text("a"), "c")


def test_a_state_comes_back_from_json() -> None:
    """With its graph, or with the graph put back."""
    state = folded(TransitionGraph.sequence(["a", "b"]), packet("a", set={"k": [1]}))
    assert WorkflowState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    small = state.to_dict(graph=False)
    assert "graph_data" not in small
    assert WorkflowState.from_dict(small, graph_data=state.graph_data) == state


def test_a_state_of_other_fields_is_refused() -> None:
    """The error names the field."""
    with pytest.raises(WorkflowGraphError, match="has no turns"):
        WorkflowState.from_dict({"turns": 1})


def test_a_copied_state_is_its_own() -> None:
    """Changing the copy leaves the original alone."""
    state = opened(TransitionGraph("a"), k=[1])
    state.copy().context_vars["k"].append(2)
    assert state.context_vars == {"k": [1]}


def test_point_1_a_channel_has_two_participants() -> None:
    """One is too few."""
    with pytest.raises(ProtocolError, match="at least 2 participants, not 1"):
        opening_state({}, ChannelFacts(participants=["a"]), creator_id="a")


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({}, r"needs knobs\['graph'\] as an object"),
        ({"graph": TransitionGraph("a")}, r"pass graph\.to_dict\(\), not TransitionGraph"),
        ({"graph": {}}, "the graph lacks initial_speaker"),
        ({"graph": TransitionGraph("a").to_dict(), "context_vars": [1]}, "context_vars"),
        ({"graph": TransitionGraph("a").to_dict(), "context_vars": {"k": {1}}}, "JSON cannot"),
        ({"graph": TransitionGraph("z").to_dict()}, "'z' does not take part"),
    ],
)
def test_point_1_a_channel_needs_its_knobs(knobs: dict[str, Any], said: str) -> None:
    """What is missing or wrong is named."""
    with pytest.raises(ProtocolError, match=said):
        opening_state(knobs, ChannelFacts(participants=["a", "b"]), creator_id="a")


def test_point_1_the_opening_state_waits_for_the_initial_speaker() -> None:
    """Nothing was said, the first variables are there."""
    state = opened(TransitionGraph("b"), k=1)
    assert (state.expected_next_speaker, state.turn_count, state.creator_id) == ("b", 0, "a")
    assert state.context_vars == {"k": 1}


def test_point_3_only_the_expected_speaker_may_speak() -> None:
    """The error names both."""
    state = opened(TransitionGraph("a"))
    for message in (text("b"), packet("b")):
        with pytest.raises(ProtocolError, match="expects 'a' to speak, not 'b'"):
            check_send(message, state)
    check_send(text("a"), state)


def test_point_3_any_participant_may_change_variables() -> None:
    """Out of turn as well; a stranger may not."""
    state = opened(TransitionGraph("a"))
    check_send(context_set("c", set={"k": 1}), state)
    with pytest.raises(ProtocolError, match="does not take part"):
        check_send(context_set("z", set={"k": 1}), state)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"set": []}, "set is an object, not list"),
        ({"delete": "k"}, "delete is a list, not str"),
        ({"delete": [1]}, r"delete\.0 is text, not int"),
        ({"add": {}}, "event_data has the unknown add"),
    ],
)
def test_a_malformed_context_change_is_refused(data: dict[str, Any], said: str) -> None:
    """`set` is an object and `delete` a list of keys, nothing else."""
    with pytest.raises(ProtocolError, match=f"malformed: {said}"):
        check_send(context_set("a", **data), opened(TransitionGraph("a")))


def test_variables_have_a_largest_size() -> None:
    """One of them, and all of them together."""
    with pytest.raises(ProtocolError, match=r"'k': .* the limit is 16384"):
        check_updates({"set": {"k": "x" * VALUE_LIMIT}}, {}, writer="Ann")
    full = {str(n): "x" * (VALUE_LIMIT - 10) for n in range(CHANNEL_LIMIT // VALUE_LIMIT)}
    with pytest.raises(ProtocolError, match=r"together: .* the limit is 65536"):
        check_updates({"set": {"k": "x" * 100}}, full, writer="Ann")


def test_a_list_of_writers_guards_a_key() -> None:
    """Others may neither set nor delete it; a key without one is open."""
    acl = {"approve*": ["Ann"]}
    check_updates({"set": {"approved": True, "free": 1}}, {}, writer="Ann", acl=acl)
    for updates in ({"set": {"approved": True}}, {"delete": ["approved"]}):
        with pytest.raises(ProtocolError, match="'Bob' may not change 'approved'"):
            check_updates(updates, {}, writer="Bob", acl=acl)


def test_each_matching_pattern_must_list_a_writer() -> None:
    """A wider pattern never opens what a narrower one closes."""
    assert writers_of("k", {"*": ["Ann", "Bob"], "k": ["Ann"]}) == {"Ann"}
    assert writers_of("other", {"k": ["Ann"]}) is None


def test_point_6_a_silent_round_writes_no_packet() -> None:
    """Without a body and a routing call there is nothing to send."""
    assert packet_data({"kind": "text"}, "") is None
    routed = packet_data({"kind": "handoff", "tool": "t"}, "")
    assert routed is not None
    assert routed["context_updates"] == {"set": {}, "delete": []}
