"""The fold: a channel's state after one accepted envelope, and whether it ends.

Pure and deterministic: equal envelopes always give equal states. The cost depends on the size of
the envelope, not on the length of the channel.
"""

from __future__ import annotations

from dataclasses import replace

from agent_adapter.flow.compiled import CompiledGraph, compile_graph
from agent_adapter.flow.context_vars import applied, updates_of
from agent_adapter.flow.envelope import EV_CONTEXT_SET, EV_PACKET, Envelope, is_turn
from agent_adapter.flow.state import WorkflowState
from agent_adapter.flow.targets import TransitionDecision


def fold(
    envelope: Envelope, state: WorkflowState, graph: CompiledGraph | None = None
) -> WorkflowState:
    """The state after `envelope`; `state` itself is not changed.

    `graph` is the compiled form of `state.graph_data`, looked up if not given. Unchanged parts are
    shared by both states: copy a state before changing it. Raises `WorkflowGraphError` that names a
    custom condition or target that raised.
    """
    if envelope.event_type == EV_CONTEXT_SET:
        variables = applied(updates_of(envelope), state.context_vars)
        return state if variables is state.context_vars else replace(state, context_vars=variables)
    if not is_turn(envelope):
        return state
    if graph is None:
        graph = compile_graph(state.graph_data)
    after = WorkflowState(
        participant_order=state.participant_order,
        expected_next_speaker=state.expected_next_speaker,
        last_speaker_id=envelope.sender_id,
        last_envelope_id=envelope.envelope_id,
        turn_count=state.turn_count + 1,
        creator_id=state.creator_id,
        graph_data=state.graph_data,
        context_vars=applied(updates_of(envelope), state.context_vars),
    )
    decision = _routed(envelope, after) or graph.decide(after, envelope)
    _settle(after, decision)
    return after


def close_reason(state: WorkflowState, graph: CompiledGraph | None = None) -> str | None:
    """The reason for which the channel closes in `state`; `None` if it stays open.

    A reason of the graph takes precedence over `max_turns`.
    """
    if state.expected_next_speaker is None:
        return state.pending_close_reason or "workflow_terminated"
    if graph is None:
        graph = compile_graph(state.graph_data)
    if graph.max_turns is not None and state.turn_count >= graph.max_turns:
        return "max_turns"
    return None


def _routed(envelope: Envelope, state: WorkflowState) -> TransitionDecision | None:
    """The decision of the packet's own routing; `None` leaves it to the transitions."""
    if envelope.event_type != EV_PACKET:
        return None
    routing = envelope.event_data.get("routing")
    if not isinstance(routing, dict):
        return None
    if routing.get("kind") == "finish":
        reason = routing.get("reason")
        return TransitionDecision(None, (isinstance(reason, str) and reason) or "finished")
    target = routing.get("target")
    if routing.get("kind") == "handoff" and target in state.participant_order:
        return TransitionDecision(target)
    return None


def _settle(state: WorkflowState, decision: TransitionDecision) -> None:
    speaker = decision.next_speaker
    if speaker is not None and state.participant_order and speaker not in state.participant_order:
        # Waiting for a participant that does not exist would stall the channel silently.
        state.expected_next_speaker = None
        state.pending_close_reason = "unknown_speaker"
        return
    state.expected_next_speaker = speaker
    state.pending_close_reason = decision.close_reason
