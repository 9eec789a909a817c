"""`run_round`: runs the driver, then finishes, parks or fails the turn."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from opentelemetry import trace

from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalPending,
    ProtocolError,
    ToolError,
    ToolInDoubt,
)
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.turns.turn import Reply, Turn
from agent_adapter.network.turns.turn_spans import traceparent

_log = logging.getLogger("agent_adapter.network")

Drive = Callable[[Any, Turn], Awaitable[Reply]]
"""Runs one round of an agent: `await drive(agent, turn)`."""


async def run_round(agent: Any, turn: Turn, drive: Drive) -> None:
    """Run the round and report its end to the hub; only cancellation leaves the turn open.

    If a call of the round waits for a person, no packet is written: the turn is parked and runs
    again after the decision. Errors of the hub itself are raised.
    """
    reply: Reply | None = None
    error: Exception | None = None
    async with turn.scope() as scope:
        try:
            reply = await drive(agent, turn)
        except Exception as exc:
            error = exc
    waits_for = _waits_for([*scope.blocked, *_blocking(error)])
    if waits_for:
        await turn.port.park(waits_for)
        return
    packet: Envelope | None = None
    if reply is not None:
        try:
            packet = round_envelope(turn, reply)
        except ProtocolError as exc:
            error = exc
    if error is not None:
        await turn.port.fail(error)
        return
    await turn.port.finish(packet, turn.adopted)


def round_envelope(turn: Turn, reply: Reply) -> Envelope | None:
    """The single envelope of the round; `None` for a silent round.

    Raises `ProtocolError` for a handoff to a name outside of the channel.
    """
    try:
        envelope = turn.adapter.build_round_envelope(
            turn.metadata,
            turn.agent_id,
            reply.body,
            reply.calls,
            turn.state(),
            causation_id=turn.trigger.envelope_id if turn.trigger is not None else None,
        )
    except ToolError as exc:
        raise ProtocolError(str(exc)) from exc
    if envelope is None or not _fits(turn, envelope):
        return None
    in_span = trace.get_current_span().get_span_context().is_valid
    return replace(
        envelope,
        idempotency_key=turn.turn_id,
        trace_id=envelope.trace_id or (traceparent() if in_span else None),
    )


def _fits(turn: Turn, envelope: Envelope) -> bool:
    """Whether the round may still speak after what it has said with the tool `say`."""
    if turn.said:
        try:
            turn.adapter.validate_send(turn.metadata, envelope, turn.spoken_state())
        except ProtocolError as exc:
            _log.info("%s had said its part: %s", turn.agent_name, exc)
            return False
    return True


def _blocking(error: Exception | None) -> list[AgentAdapterError]:
    return [error] if isinstance(error, (ApprovalPending, ToolInDoubt)) else []


def _waits_for(blocked: Iterable[AgentAdapterError]) -> list[str]:
    """The ids of approvals and calls that wait for a person, without duplicates."""
    ids: list[str] = []
    for error in blocked:
        if isinstance(error, ApprovalPending):
            ids.extend(error.ids)
        elif isinstance(error, ToolInDoubt) and error.call_key is not None:
            ids.append(error.call_key)
    return list(dict.fromkeys(ids))
