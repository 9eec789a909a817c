"""The same envelopes through this fold and through AG2's give the same channel."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow import (
    AgentTarget,
    Always,
    ChannelFacts,
    ContextEquals,
    Envelope,
    FromSpeaker,
    RevertToInitiatorTarget,
    RoundRobinTarget,
    StayTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
    TransitionTarget,
    check_send,
    close_reason,
    fold,
    opening_state,
)
from agent_adapter.flow import envelope as ours
from tests.sampling import sample

theirs: Any = pytest.importorskip("ag2.network")

RUNS = sample("random channels", quick=5_000, full=20_000)
TOOLS, KEYS = ["t1", "t2"], ["k1", "k2"]
VALUES: list[Any] = [None, True, False, 0, 1, "x", [1], {"n": 1}]
QUIET = ["ag2.channel.opened", "ag2.task.cancelled", "ag2.expectation.violated", "own.event"]


def _target(rng: random.Random, order: list[str]) -> TransitionTarget:
    made: list[TransitionTarget] = [
        AgentTarget(rng.choice(order)),
        AgentTarget(rng.choice(order)),
        RoundRobinTarget(),
        StayTarget(),
        RevertToInitiatorTarget(),
        TerminateTarget(rng.choice(["", "r1", "r2"])),
    ]
    return rng.choice(made)


def _graph(rng: random.Random, order: list[str]) -> TransitionGraph:
    kind = rng.random()
    if kind < 0.05:
        steps = rng.choices(order, k=rng.randint(1, 4))
        # Of a participant with several steps ours counts the turns, which AG2 cannot (0002).
        return TransitionGraph.loads(theirs.TransitionGraph.sequence(steps).to_dict())
    if kind < 0.1:
        return TransitionGraph.round_robin(order, max_turns=rng.choice([None, 1, 4]))
    rules = []
    for _ in range(rng.randint(0, 6)):
        when = rng.choice(
            [
                FromSpeaker(rng.choice(order)),
                FromSpeaker(rng.choice(order)),
                ToolCalled(rng.choice(TOOLS)),
                ContextEquals(rng.choice(KEYS), rng.choice(VALUES)),
                Always(),
            ]
        )
        rules.append(Transition(when, _target(rng, order), rng.choice([-1, 0, 0, 0, 1])))
    limit = rng.choice([None, None, 1, 3, 6])
    return TransitionGraph(rng.choice(order), rules, _target(rng, order), limit)


def _updates(rng: random.Random) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if rng.random() < 0.6:
        data["set"] = {rng.choice(KEYS): rng.choice(VALUES)}
    if rng.random() < 0.4:
        data["delete"] = rng.choice([None, [rng.choice(KEYS)], KEYS])
    return data


def _routing(rng: random.Random, order: list[str]) -> Any:
    return rng.choice(
        [
            None,
            {},
            {"kind": "text"},
            {"kind": "handoff", "tool": rng.choice(TOOLS), "reason": "why"},
            {"kind": "handoff", "tool": rng.choice(TOOLS), "target": rng.choice(order)},
            {"kind": "handoff", "tool": rng.choice(TOOLS), "target": None},
            {"kind": "finish", "tool": "f", "reason": rng.choice(["", "solved"]), "summary": "s"},
        ]
    )


def _message(rng: random.Random, order: list[str], expected: str | None, number: int) -> Envelope:
    sender = expected if expected and rng.random() < 0.8 else rng.choice(order)
    kind = rng.random()
    if kind < 0.35:
        event, data = ours.EV_TEXT, {"text": "hello"}
    elif kind < 0.75:
        event, data = ours.EV_PACKET, {"routing": _routing(rng, order), "body": "b"}
        if rng.random() < 0.7:
            data["context_updates"] = _updates(rng)
    elif kind < 0.92:
        event, data = ours.EV_CONTEXT_SET, _updates(rng)
    else:
        event, data = rng.choice(QUIET), {}
    return Envelope("ch", sender, None, event, data, envelope_id=f"e{number}")


def _metadata(adapter: Any, order: list[str], creator: str, knobs: dict[str, Any]) -> Any:
    role = theirs.ParticipantRole
    return theirs.ChannelMetadata(
        channel_id="ch",
        manifest=adapter.manifest,
        creator_id=creator,
        participants=[
            theirs.Participant(item, role.INITIATOR if item == creator else role.PARTICIPANT, index)
            for index, item in enumerate(order)
        ],
        state=theirs.ChannelState.ACTIVE,
        created_at="2026-01-01T00:00:00Z",
        knobs=knobs,
    )


def _refused(send: Any, error: type[Exception]) -> bool:
    try:
        send()
    except error:
        return True
    return False


def _compare_run(seed: int) -> tuple[int, str | None]:
    """Fold one random channel in both; the number of turns, and why it closed."""
    rng = random.Random(seed)
    order = ["a", "b", "c", "d"][: rng.randint(2, 4)]
    creator = rng.choice(order)
    knobs = {
        "graph": _graph(rng, order).to_dict(),
        "context_vars": {rng.choice(KEYS): rng.choice(VALUES)} if rng.random() < 0.5 else {},
    }
    adapter = theirs.WorkflowAdapter()
    metadata = _metadata(adapter, order, creator, knobs)
    their_state = adapter.initial_state(metadata)
    facts = ChannelFacts(participants=order)
    state, graph = opening_state(knobs, facts, creator_id=creator)
    assert state.to_dict() == asdict(their_state), seed
    for number in range(rng.randint(1, 10)):
        message = _message(rng, order, state.expected_next_speaker, number)
        same = theirs.Envelope.from_dict(message.to_dict())
        refused = _refused(
            lambda m=same, s=their_state: adapter.validate_send(metadata, m, s),
            theirs.ProtocolError,
        )
        assert _refused(lambda m=message, s=state: check_send(m, s), ProtocolError) == refused, seed
        if refused:
            continue
        state, their_state = fold(message, state, graph), adapter.fold(same, their_state)
        assert state.to_dict() == asdict(their_state), seed
        if not ours.is_turn(message):
            continue
        result = adapter.on_accepted(metadata, same, their_state)
        reason = close_reason(state, graph)
        assert (reason or "") == result.auto_close_reason, seed
        assert (reason is not None) == (result.next_state is not None), seed
        if reason is not None:
            return state.turn_count, reason
    return state.turn_count, None


@pytest.mark.slow
def test_random_channels_fold_alike() -> None:
    """Random channels have the same states and the same ends in both."""
    ends: dict[str | None, int] = {}
    turns = 0
    for seed in range(RUNS):
        taken, reason = _compare_run(seed)
        turns += taken
        ends[reason] = ends.get(reason, 0) + 1
    # The comparison is worth something only while every kind of end is well represented.
    wanted = {None, "r1", "r2", "solved", "finished", "max_turns", "workflow_terminated"}
    assert min(ends.get(reason, 0) for reason in wanted) > RUNS / 100, ends
    assert turns > RUNS


def test_a_few_random_channels_fold_alike() -> None:
    """The quick form of the same comparison."""
    for seed in range(1_000_000, 1_000_500):
        _compare_run(seed)


def test_graphs_of_either_load_in_the_other() -> None:
    """What one writes the other reads and writes again, to the letter."""
    for seed in range(500):
        rng = random.Random(seed)
        graph = _graph(rng, ["a", "b", "c"])
        there = theirs.TransitionGraph.loads(graph.dumps())
        assert there.to_dict() == graph.to_dict()
        assert there.dumps() == graph.dumps()
        back = TransitionGraph.loads(there.to_dict())
        assert back == graph
        assert TransitionGraph.loads(there.dumps()) == graph


def test_the_factories_write_the_same_graphs() -> None:
    """`sequence` and `round_robin` give the same data in both."""
    steps = ["a", "b", "c"]
    assert TransitionGraph.sequence(steps).to_dict() == (
        theirs.TransitionGraph.sequence(steps).to_dict()
    )
    assert TransitionGraph.round_robin(steps, max_turns=6).to_dict() == (
        theirs.TransitionGraph.round_robin(steps, max_turns=6).to_dict()
    )


def test_envelopes_of_either_load_in_the_other() -> None:
    """One JSON message is the same message in both."""
    message = Envelope("ch", "a", ["b"], ours.EV_TEXT, {"text": "é"}, "e1", depth=2, ttl_seconds=9)
    there = theirs.Envelope.from_json(message.to_json())
    assert there.to_json() == message.to_json()
    assert Envelope.from_json(there.to_json()) == message


def test_event_names_are_the_same() -> None:
    """Every event name that AG2's network exports has the same text here."""
    names = [name for name in dir(theirs) if name.startswith("EV_")]
    assert names
    assert {name: getattr(ours, name) for name in names} == {
        name: getattr(theirs, name) for name in names
    }


def test_conditions_beyond_ag2s_do_not_load_there() -> None:
    """AG2 refuses a graph with a composed condition instead of guessing."""
    data = json.loads(TransitionGraph.sequence(["a", "b"]).dumps())
    data["transitions"][0]["when"] = {"name": "not", "args": {"condition": {"name": "always"}}}
    assert TransitionGraph.loads(data).transitions
    with pytest.raises(theirs.WorkflowGraphError):
        theirs.TransitionGraph.loads(data)
