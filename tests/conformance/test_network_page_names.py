"""The page's list of imports, the fields of its data classes, and its raw packets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

import agent_adapter.network as network
from agent_adapter.network import (
    EV_CONTEXT_SET,
    EV_PACKET,
    WORKFLOW_TYPE,
    AgentTarget,
    Always,
    ChannelInject,
    ChannelStateInject,
    ContextEquals,
    FromSpeaker,
    Handoff,
    Hub,
    HubClient,
    HumanClient,
    LocalLink,
    Passport,
    Resume,
    RevertToInitiatorTarget,
    RoundRobinTarget,
    StayTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionCondition,
    TransitionDecision,
    TransitionGraph,
    TransitionTarget,
    WorkflowState,
    register_condition,
    register_target,
)
from agent_adapter.network.workflow_helpers import delete_context, set_context

from ._network import STORES, call, closed, run_on

pytestmark = pytest.mark.anyio


def test_every_name_of_the_list_is_there() -> None:
    """What the page's last block imports is importable, and callable where it is called."""
    functions = (register_condition, register_target, set_context, delete_context)
    classes = (
        *(AgentTarget, RoundRobinTarget, StayTarget, RevertToInitiatorTarget, TerminateTarget),
        *(Always, FromSpeaker, ToolCalled, ContextEquals, Handoff, HumanClient),
        *(Transition, TransitionGraph, TransitionTarget, TransitionCondition, TransitionDecision),
    )
    assert all(map(callable, (*functions, *classes)))
    assert (WORKFLOW_TYPE, EV_CONTEXT_SET) == ("workflow", "ag2.context.set")
    assert ChannelInject is not ChannelStateInject


def test_the_events_are_ag2s() -> None:
    """Each event of AG2's network has the same text here."""
    import ag2.network as ag2_network

    ours = {name: getattr(network, name) for name in dir(network) if name.startswith("EV_")}
    theirs = {name: getattr(ag2_network, name) for name in ours}
    assert ours == theirs


def test_the_fields_of_a_graph() -> None:
    """A graph and a transition have the page's fields, in its order, with its defaults."""
    graph = TransitionGraph("a", [Transition(Always(), StayTarget())], TerminateTarget("over"))
    assert [item.name for item in dataclasses.fields(TransitionGraph)] == [
        "initial_speaker",
        "transitions",
        "default_target",
        "max_turns",
    ]
    assert (graph.max_turns, graph.transitions[0].priority) == (None, 0)


def test_the_fields_of_the_state() -> None:
    """`WorkflowState` has the page's fields and defaults."""
    state = WorkflowState(participant_order=["a"], expected_next_speaker="a")
    assert dataclasses.asdict(state) == {
        "participant_order": ["a"],
        "expected_next_speaker": "a",
        "last_speaker_id": None,
        "last_envelope_id": None,
        "turn_count": 0,
        "pending_close_reason": "",
        "creator_id": "",
        "graph_data": {},
        "context_vars": {},
    }


async def one_round(store: Any) -> list[tuple[str, dict[str, Any]]]:
    """The events that one round of an agent leaves in the log."""
    async with await Hub.open(store) as hub:
        hc = HubClient(LocalLink(hub), hub=hub)
        user = await hc.register_human(Passport(name="user"))
        agent = Agent("worker", config=TestConfig(call("note"), "noted"))

        @agent.tool
        async def note(channel: ChannelInject) -> str:
            """Notes."""
            await set_context(channel, "noted", True)
            return "ok"

        worker = await hc.register(agent, Passport(name="worker"), Resume(), attach_plugin=False)
        graph = TransitionGraph.sequence([user.agent_id, worker.agent_id])
        channel = await user.open(
            type=WORKFLOW_TYPE, target=[worker.agent_id], knobs={"graph": graph.to_dict()}
        )
        await channel.send("Note it.")
        await user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=closed, timeout=60
        )
        log = await hub.read_wal(channel.channel_id)
        wanted = (EV_CONTEXT_SET, EV_PACKET)
        return [(e.event_type, e.event_data) for e in log if e.event_type in wanted]


@pytest.mark.parametrize("kind", STORES)
async def test_one_round_is_one_packet(kind: str, tmp_path: Path) -> None:
    """What the tools set comes before the packet; the packet has routing, updates and body."""
    for events in await run_on(kind, tmp_path, one_round):
        assert [name for name, _ in events] == [EV_CONTEXT_SET, EV_PACKET]
        assert events[0][1]["set"] == {"noted": True}
        assert events[1][1] == {
            "routing": {"kind": "text"},
            "context_updates": {"set": {}, "delete": []},
            "body": "noted",
        }
