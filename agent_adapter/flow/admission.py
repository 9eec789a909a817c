"""Checks of a workflow channel: its graph when it opens, its messages while it runs."""

from __future__ import annotations

from typing import Any

from agent_adapter.core.errors import ProtocolError, WorkflowGraphError
from agent_adapter.flow.check import graph_errors
from agent_adapter.flow.compiled import CompiledGraph, compile_graph
from agent_adapter.flow.envelope import EV_CONTEXT_SET, Envelope, envelope_problems, is_turn
from agent_adapter.flow.findings import ChannelFacts
from agent_adapter.flow.registry import TransitionRegistry
from agent_adapter.flow.state import WorkflowState
from agent_adapter.flow.wire import json_copy

_MOST_SHOWN = 10


def opening_state(
    knobs: dict[str, Any],
    facts: ChannelFacts,
    *,
    creator_id: str,
    registry: TransitionRegistry | None = None,
) -> tuple[WorkflowState, CompiledGraph]:
    """The state of a channel before its first turn, and its graph.

    `knobs["graph"]` is the graph's wire form, `knobs["context_vars"]` the initial variables.
    Raises `ProtocolError` that names what is missing or wrong.
    """
    order = list(facts.participants or ())
    if len(order) < 2:
        raise ProtocolError(f"a workflow channel has at least 2 participants, not {len(order)}")
    data = knobs.get("graph")
    if not isinstance(data, dict):
        raise ProtocolError(
            "a workflow channel needs knobs['graph'] as an object; "
            f"pass graph.to_dict(), not {type(data).__name__}"
        )
    variables = knobs.get("context_vars", {})
    if not isinstance(variables, dict):
        raise ProtocolError("knobs['context_vars'] is an object of keys and values")
    try:
        graph = compile_graph(data, registry)
    except WorkflowGraphError as exc:
        raise ProtocolError(f"knobs['graph']: {exc}") from exc
    refused = graph_errors(graph.graph, facts)
    if refused:
        raise ProtocolError("knobs['graph']: " + "; ".join(map(str, refused[:_MOST_SHOWN])))
    state = WorkflowState(
        participant_order=order,
        expected_next_speaker=graph.graph.initial_speaker,
        creator_id=creator_id,
        graph_data=data,
        context_vars=json_copy(variables, "knobs['context_vars']", ProtocolError),
    )
    return state, graph


def check_send(envelope: Envelope, state: WorkflowState) -> None:
    """Raises `ProtocolError` for an envelope that its sender may not send now.

    The message names the sender and the expected participant, or the malformed part.
    """
    sender = envelope.sender_id
    if sender not in state.participant_order:
        order = ", ".join(state.participant_order)
        raise ProtocolError(f"{sender!r} does not take part in the channel of {order}")
    if is_turn(envelope) and sender != state.expected_next_speaker:
        expected = state.expected_next_speaker
        whose = f"expects {expected!r} to speak" if expected else "has ended and expects no one"
        raise ProtocolError(f"the channel {whose}, not {sender!r}")
    if is_turn(envelope) or envelope.event_type == EV_CONTEXT_SET:
        problems = envelope_problems(envelope)
        if problems:
            raise ProtocolError(f"the {envelope.event_type} is malformed: {'; '.join(problems)}")
        check_target(envelope, state)


def check_target(envelope: Envelope, state: WorkflowState) -> None:
    """Raises `ProtocolError` for a handoff to a stranger."""
    routing = envelope.event_data.get("routing") if is_turn(envelope) else None
    target = routing.get("target") if isinstance(routing, dict) else None
    if target is not None and target not in state.participant_order:
        raise ProtocolError(
            f"the {envelope.event_type} is malformed: routing.target {target!r} is no "
            "participant's id"
        )
