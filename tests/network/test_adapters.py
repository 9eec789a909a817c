"""The four types of channel, without a hub: who may speak, what follows, what is refused."""

from __future__ import annotations

import pytest

from agent_adapter.core.errors import ProtocolError, ToolError
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.flow import (
    EV_CHANNEL_CLOSED,
    EV_CONTEXT_SET,
    EV_PACKET,
    EV_TEXT,
    AgentTarget,
    Always,
    RoundCall,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)
from agent_adapter.network import ChannelManifest, ChannelMetadata, ChannelState, ExpectedTurn
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter, check_participants
from agent_adapter.network.channels.metadata import ParticipantSchema
from tests.network._channels import metadata, said, workflow

ADAPTERS = AdapterRegistry()


def run(channel: ChannelMetadata, *senders: str) -> tuple[ChannelAdapter, object]:
    """The channel's state after each of `senders` has said something."""
    adapter = ADAPTERS.get(channel.manifest.type)
    adapter.validate_create(channel)
    state = adapter.initial_state(channel)
    for number, sender in enumerate(senders):
        envelope = said(sender, envelope_id=f"e{number}")
        adapter.validate_send(channel, envelope, state)
        state = adapter.fold(envelope, state)
    return adapter, state


def test_unknown_type_lists_the_known() -> None:
    """A type that nobody knows is refused with those that there are."""
    with pytest.raises(ProtocolError, match=r"consulting \(version 1\).*workflow \(version 1\)"):
        ADAPTERS.get("party")


@pytest.mark.parametrize("type", ["consulting", "conversation", "discussion"])
def test_state_survives_json(type: str) -> None:
    """The folded state of each type reads back as it was written."""
    channel = metadata(type, "ab")
    adapter, state = run(channel, "a", "b")
    assert adapter.state_from_dict(channel, adapter.state_to_dict(state)) == state


def test_workflow_state_is_stored_without_its_graph() -> None:
    """The graph of a workflow lies in its knobs, once, and comes back into the state."""
    channel = workflow()
    adapter, state = run(channel, "a")
    stored = adapter.state_to_dict(state)
    assert "graph_data" not in stored
    assert adapter.state_from_dict(channel, stored) == state


# --- consulting -----------------------------------------------------------------------------------


def test_consulting_is_one_question_and_one_answer() -> None:
    """After the answer the channel closes, and nobody is expected."""
    channel = metadata("consulting", "ab")
    adapter, state = run(channel, "a", "b")
    result = adapter.on_accepted(channel, said("b"), state)
    assert (result.next_state, result.auto_close_reason) == (
        ChannelState.CLOSED,
        "consulting_complete",
    )
    assert adapter.expected_next(channel, state) is None


def test_consulting_expects_the_answer_of_the_other() -> None:
    """The question gives the other participant the turn, with the question as its reason."""
    channel = metadata("consulting", "ab")
    adapter, state = run(channel, "a")
    assert adapter.next_turn(channel, said("a"), state) == ExpectedTurn("b", "e0")


@pytest.mark.parametrize(
    ("senders", "part"), [("b", "question of A"), ("aa", "answer of B"), ("aba", "is answered")]
)
def test_consulting_out_of_turn(senders: str, part: str) -> None:
    """Whoever speaks out of turn is told what the channel expects, and of whom."""
    with pytest.raises(ProtocolError, match=part):
        run(metadata("consulting", "ab"), *senders)


def test_consulting_has_two_participants() -> None:
    """A third participant is refused."""
    with pytest.raises(ProtocolError, match="exactly 2 participants, the opener included, not 3"):
        run(metadata("consulting", "abc"))


# --- conversation and discussion ------------------------------------------------------------------


def test_conversation_has_no_order() -> None:
    """Either side of a conversation speaks when it likes."""
    channel = metadata("conversation", "ab")
    adapter, state = run(channel, "a", "a", "b")
    assert adapter.expected_next(channel, state) is None


def test_conversation_gives_the_other_a_turn() -> None:
    """What one side says the other may answer."""
    channel = metadata("conversation", "ab")
    adapter, state = run(channel, "a")
    assert adapter.next_turn(channel, said("a", envelope_id="e0"), state) == ExpectedTurn("b", "e0")


def test_discussion_goes_round() -> None:
    """Each text passes the turn on; after the last the opener is next."""
    channel = metadata("discussion")
    adapter, state = run(channel, "a", "b", "c")
    assert adapter.expected_next(channel, state) == ExpectedTurn("a", "e2")


def test_discussion_out_of_turn_names_both() -> None:
    """Whoever speaks out of turn reads who was expected, and who it is."""
    with pytest.raises(ProtocolError, match=r"expects B \(b\) to speak, not C \(c\)"):
        run(metadata("discussion"), "a", "c")


def test_discussion_knows_one_order() -> None:
    """Another order is refused with the type of channel that takes it."""
    with pytest.raises(ProtocolError, match="'workflow' channel takes any order"):
        run(metadata("discussion", ordering="loudest_first"))


@pytest.mark.parametrize("event", [EV_CONTEXT_SET, EV_PACKET])
def test_only_workflows_have_variables(event: str) -> None:
    """Packets and changes of variables are refused where there is no graph to read them."""
    adapter, state = run(metadata("discussion"))
    with pytest.raises(ProtocolError, match="only a 'workflow' channel does"):
        adapter.validate_send(metadata("discussion"), said("a", event=event, data={}), state)


# --- workflow -------------------------------------------------------------------------------------


def test_workflow_follows_its_graph() -> None:
    """The graph says who is next and when the channel closes, and why."""
    channel = workflow()
    adapter, state = run(channel, "a", "b", "c")
    result = adapter.on_accepted(channel, said("c"), state)
    assert (result.next_state, result.auto_close_reason) == (
        ChannelState.CLOSED,
        "sequence_complete",
    )


def test_workflow_out_of_turn_names_both() -> None:
    """Whoever speaks out of turn reads who was expected, and who it is."""
    with pytest.raises(ProtocolError, match=r"expects B \(b\) to speak, not C \(c\)"):
        run(workflow(), "a", "c")


def test_ended_workflow_expects_nobody() -> None:
    """Once nobody is expected, nobody may speak."""
    with pytest.raises(ProtocolError, match="has ended and expects no one, not A"):
        run(workflow(), "a", "b", "c", "a")


def test_stranger_may_say_nothing() -> None:
    """Who takes no part may not even change a variable."""
    adapter, state = run(workflow())
    with pytest.raises(ProtocolError, match=r"'x' does not take part in .*: A, B, C"):
        adapter.validate_send(workflow(), said("x", event=EV_CONTEXT_SET, data={"set": {}}), state)


@pytest.mark.parametrize("type", ["workflow", "discussion"])
def test_hub_s_own_events_cannot_be_forged(type: str) -> None:
    """A participant cannot write that a channel was closed."""
    channel = workflow() if type == "workflow" else metadata(type)
    adapter, state = run(channel)
    with pytest.raises(ProtocolError, match="written by the hub alone"):
        adapter.validate_send(channel, said("a", event=EV_CHANNEL_CLOSED, data={}), state)


def test_audience_must_take_part() -> None:
    """An audience with a stranger in it is refused with the ids that there are."""
    adapter, state = run(workflow())
    with pytest.raises(ProtocolError, match=r"the audience has 'x'.* a, b, c"):
        adapter.validate_send(workflow(), said("a", audience=["b", "x"]), state)


@pytest.mark.parametrize(
    ("event", "data", "what"),
    [
        (EV_TEXT, {"text": 7}, "a text"),
        (EV_TEXT, {}, "a text"),
        (EV_PACKET, {"routing": "b"}, "routing is an object"),
        (EV_CONTEXT_SET, {"sets": {}}, "has the unknown sets"),
    ],
)
def test_malformed_messages_are_refused(event: str, data: dict[str, object], what: str) -> None:
    """What is not as its event should be is refused with what it should be."""
    adapter, state = run(workflow())
    with pytest.raises(ProtocolError, match=f"malformed: .*{what}"):
        adapter.validate_send(workflow(), said("a", event=event, data=data), state)


def test_variables_have_owners() -> None:
    """`context_acl` names who may change a variable; anybody else is refused."""
    channel = workflow(context_acl={"approved": ["B"]})
    adapter, state = run(channel)
    change = {"set": {"approved": True}}
    adapter.validate_send(channel, said("b", event=EV_CONTEXT_SET, data=change), state)
    with pytest.raises(ProtocolError, match="'A' may not change 'approved'"):
        adapter.validate_send(channel, said("a", event=EV_CONTEXT_SET, data=change), state)


@pytest.mark.parametrize(
    ("knobs", "what"),
    [
        ({"context_acl": ["B"]}, "object of key patterns"),
        ({"context_acl": {"x": ["Zed"]}}, "names Zed, who takes no part"),
        ({"context_vars": [1]}, "object of keys and values"),
        ({"context_vars": {"x": "y" * 20_000}}, "the variable 'x': .* bytes"),
        ({"graph": None}, "knobs\\['graph'\\]"),
    ],
)
def test_bad_knobs_are_refused(knobs: dict[str, object], what: str) -> None:
    """A workflow whose knobs are wrong does not open."""
    channel = workflow(**knobs) if "graph" not in knobs else metadata(**knobs)
    with pytest.raises(ProtocolError, match=what):
        ADAPTERS.get("workflow").validate_create(channel)


def test_a_role_that_the_type_does_not_have_is_refused() -> None:
    """The roles of a manifest hold: a channel with another one does not open."""
    with pytest.raises(ProtocolError, match="has the roles moderator, and this one has initiator"):
        check_participants(
            ChannelManifest("panel", participants=ParticipantSchema(min=2, roles=["moderator"])),
            metadata("panel", "ab"),
        )


@pytest.mark.parametrize("type", ["consulting", "conversation", "discussion"])
def test_a_message_with_a_lifetime_is_refused(type: str) -> None:
    """Messages stay in the log: `ttl_seconds` has no effect, so no value but `None` is accepted."""
    channel = metadata(type, "ab")
    adapter, state = run(channel)
    with pytest.raises(ProtocolError, match="ttl_seconds is None"):
        adapter.validate_send(channel, said("a", ttl_seconds=9), state)


def test_participant_listed_twice_is_refused() -> None:
    """Listing the opener among the targets is refused with its name."""
    with pytest.raises(ProtocolError, match="A takes part twice"):
        run(metadata("discussion", "aba"))


def test_default_view_is_two_rounds() -> None:
    """A workflow's speaker sees twice as many messages as there are participants."""
    assert ADAPTERS.get("workflow").default_view_policy(workflow(), "a").window == 6


# --- a round's envelope ---------------------------------------------------------------------------


def packet(body: str, *calls: RoundCall, graph: TransitionGraph | None = None) -> object:
    """What the adapter makes of a round, as event data."""
    channel = workflow(graph)
    adapter = ADAPTERS.get("workflow")
    state = adapter.initial_state(channel)
    made = adapter.build_round_envelope(channel, "a", body, calls, state)
    return None if made is None else made.event_data


def test_silent_round_has_no_packet() -> None:
    """A round with neither words nor routing sends nothing."""
    assert packet("") is None


def test_handoff_is_resolved_by_name() -> None:
    """A handoff names a participant; the packet has its id."""
    data = packet("", RoundCall(tool="pass", result=Handoff("C", "yours")))
    assert isinstance(data, dict)
    assert data["routing"]["target"] == "c"


def test_handoff_to_nobody_is_an_error_of_the_round() -> None:
    """A handoff to an unknown name is refused with the names that there are."""
    with pytest.raises(ToolError, match="A, B, C"):
        packet("", RoundCall(tool="pass", result=Handoff("Zed")))


def test_finish_is_carried() -> None:
    """A tool that finishes the channel does so with its reason."""
    data = packet("bye", RoundCall(tool="end", result=Finish("all done", "solved")))
    assert isinstance(data, dict)
    assert (data["routing"]["kind"], data["routing"]["reason"]) == ("finish", "solved")


def test_tool_of_the_graph_routes() -> None:
    """A call of a tool that the graph names routes the round, a failed one does not."""
    graph = TransitionGraph(
        "a",
        [
            Transition(ToolCalled("escalate"), AgentTarget("b")),
            Transition(Always(), AgentTarget("c")),
        ],
        TerminateTarget(),
    )
    assert packet("", RoundCall(tool="escalate", ok=False), graph=graph) is None
    data = packet("", RoundCall(tool="escalate"), graph=graph)
    assert isinstance(data, dict)
    assert data["routing"]["tool"] == "escalate"


def test_text_channels_answer_in_text() -> None:
    """Outside of workflows a round is a plain text."""
    channel = metadata("consulting", "ab")
    adapter, state = run(channel, "a")
    made = adapter.build_round_envelope(channel, "b", "yes", [], state)
    assert made is not None
    assert (made.event_type, made.event_data) == (EV_TEXT, {"text": "yes"})
