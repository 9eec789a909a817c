"""The evaluators of expectations that AG2's network has, as functions of a channel and the time.

A hub needs none of them: it keeps each deadline as a row, and reads no log to find out. They are
here for evaluators that build on them, and for tools that judge a channel from outside.
"""

from __future__ import annotations

from datetime import datetime

from agent_adapter.flow.envelope import EV_EXPECTATION_VIOLATED, EV_PACKET, EV_TEXT, Envelope
from agent_adapter.network.channels.metadata import ChannelState, Expectation
from agent_adapter.network.channels.violations import (
    ExpectationContext,
    ExpectationEvaluator,
    Violation,
)

_NOT_CONTENT = ("ag2.channel.", "ag2.task.")


class AcksWithinEvaluator:
    """An invitation is answered within `seconds` (30): else those who have not answered."""

    name = "acks_within"

    def evaluate(self, expectation: Expectation, context: ExpectationContext) -> Violation | None:
        """The violation of a channel that still waits for answers."""
        metadata = context.metadata
        if metadata.state is not ChannelState.PENDING or not metadata.pending_acks:
            return None
        limit = float(expectation.params.get("seconds", 30))
        waited = context.now_seconds - _seconds(metadata.created_at)
        if waited < limit:
            return None
        detail = {"elapsed_seconds": waited, "threshold_seconds": limit}
        return Violation(expectation, list(metadata.pending_acks), detail)


class ReplyWithinEvaluator:
    """Whoever was spoken to speaks within `seconds` (600): else those who have not."""

    name = "reply_within"

    def evaluate(self, expectation: Expectation, context: ExpectationContext) -> Violation | None:
        """The violation of an active channel in which somebody owes an answer."""
        if context.metadata.state is not ChannelState.ACTIVE:
            return None
        limit = float(expectation.params.get("seconds", 600))
        silent = [
            item.agent_id
            for item in context.metadata.participants
            if _owes(item.agent_id, context, limit)
        ]
        return Violation(expectation, silent, {"threshold_seconds": limit}) if silent else None


class MaxSilenceEvaluator:
    """Somebody says something at least every `seconds` (3,600): else the whole channel."""

    name = "max_silence"

    def evaluate(self, expectation: Expectation, context: ExpectationContext) -> Violation | None:
        """The violation of an active channel in which nothing is said."""
        if context.metadata.state is not ChannelState.ACTIVE:
            return None
        limit = float(expectation.params.get("seconds", 3600))
        said = (item.created_at for item in reversed(context.wal) if _is_content(item))
        silent_for = context.now_seconds - _seconds(next(said, context.metadata.created_at))
        if silent_for < limit:
            return None
        detail = {"elapsed_seconds": silent_for, "threshold_seconds": limit}
        return Violation(expectation, [], detail)


def default_evaluators() -> list[ExpectationEvaluator]:
    """One of each evaluator of this module."""
    return [AcksWithinEvaluator(), ReplyWithinEvaluator(), MaxSilenceEvaluator()]


def _owes(agent_id: str, context: ExpectationContext, limit: float) -> bool:
    heard, said = None, None
    for envelope in context.wal:
        if envelope.event_type not in (EV_TEXT, EV_PACKET):
            continue
        if envelope.sender_id == agent_id:
            said = envelope
        elif envelope.audience is None or agent_id in envelope.audience:
            heard = envelope
    if heard is None:
        return False
    since = _seconds(heard.created_at)
    answered = said is not None and _seconds(said.created_at) >= since
    return not answered and context.now_seconds - since >= limit


def _is_content(envelope: Envelope) -> bool:
    kind = envelope.event_type
    return not kind.startswith(_NOT_CONTENT) and kind != EV_EXPECTATION_VIOLATED


def _seconds(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()
