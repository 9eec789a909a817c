"""`consulting`: one question, one answer, and the channel closes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.flow.state import FoldedState
from agent_adapter.network.adapters.base import AdapterResult, ExpectedTurn, TextChannelAdapter
from agent_adapter.network.channels.metadata import (
    ChannelManifest,
    ChannelMetadata,
    ChannelState,
    Expectation,
    ParticipantSchema,
)
from agent_adapter.network.channels.views import FullTranscript, ViewPolicy
from agent_adapter.network.tools.say import turn_say_tool

CONSULTING_TYPE = "consulting"
"""The name of the type."""


@dataclass(frozen=True, slots=True)
class ConsultingState(FoldedState):
    """Whether the question and the answer were sent."""

    initiator_sent: bool = False
    respondent_replied: bool = False
    last_envelope_id: str | None = None


class ConsultingAdapter(TextChannelAdapter):
    """Two participants: the opener asks once, the other answers once."""

    state_type = ConsultingState
    manifest = ChannelManifest(
        type=CONSULTING_TYPE,
        participants=ParticipantSchema(min=2, max=2, roles=["initiator", "respondent"]),
        knobs_schema={"capability": "str"},
        default_view_policy=FullTranscript.name,
        expectations=[
            Expectation("acks_within", "auto_close", {"seconds": 30}),
            Expectation("reply_within", "auto_close", {"seconds": 600}),
        ],
    )

    def initial_state(self, metadata: ChannelMetadata) -> ConsultingState:
        """Neither question nor answer."""
        return ConsultingState()

    def validate_send(
        self, metadata: ChannelMetadata, envelope: Envelope, state: ConsultingState
    ) -> None:
        """Raises `ProtocolError` for a text out of turn or after the answer."""
        if not self.check_turn(metadata, envelope):
            return
        expected = self.expected_next(metadata, state)
        if expected is None:
            raise ProtocolError(
                "the consulting channel expects no one: its question is answered, it is already "
                "complete"
            )
        if envelope.sender_id != expected.agent_id:
            names = metadata.names()
            asks = not state.initiator_sent
            part, role = ("question", "initiator") if asks else ("answer", "respondent")
            raise ProtocolError(
                f"the consulting channel expects the {part} of {names[expected.agent_id]} "
                f"({expected.agent_id}), the {role}, not {names[envelope.sender_id]} "
                f"({envelope.sender_id})"
            )

    def fold(self, envelope: Envelope, state: ConsultingState) -> ConsultingState:
        """The first text is the question, the second the answer."""
        if envelope.event_type != EV_TEXT:
            return state
        return ConsultingState(
            initiator_sent=True,
            respondent_replied=state.initiator_sent,
            last_envelope_id=envelope.envelope_id,
        )

    def on_accepted(
        self, metadata: ChannelMetadata, envelope: Envelope, state: ConsultingState
    ) -> AdapterResult:
        """The answer closes the channel."""
        if envelope.event_type == EV_TEXT and state.respondent_replied:
            return AdapterResult(ChannelState.CLOSED, "consulting_complete")
        return AdapterResult()

    def expected_next(
        self, metadata: ChannelMetadata, state: ConsultingState
    ) -> ExpectedTurn | None:
        """The opener, then the other participant, then no one."""
        if state.respondent_replied:
            return None
        asks, answers = _opener_first(metadata)
        return ExpectedTurn(answers if state.initiator_sent else asks, state.last_envelope_id)

    def tools_for(
        self, client: Any, metadata: ChannelMetadata, state: ConsultingState, participant_id: str
    ) -> list[Any]:
        """`say`, for the participant whose turn it is."""
        expected = self.expected_next(metadata, state)
        if expected is None or expected.agent_id != participant_id:
            return []
        return [turn_say_tool()]

    def default_view_policy(self, metadata: ChannelMetadata, participant_id: str) -> ViewPolicy:
        """The whole transcript: there are two messages."""
        return FullTranscript()


def _opener_first(metadata: ChannelMetadata) -> tuple[str, str]:
    first, second = metadata.participant_ids()
    return (first, second) if first == metadata.creator_id else (second, first)
