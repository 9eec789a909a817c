"""`conversation`: two participants who speak in any order until one of them closes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.flow.state import FoldedState
from agent_adapter.network.adapters.base import ExpectedTurn, TextChannelAdapter
from agent_adapter.network.channels.metadata import (
    ChannelManifest,
    ChannelMetadata,
    Expectation,
    ParticipantSchema,
)
from agent_adapter.network.channels.views import ViewPolicy, WindowedSummary
from agent_adapter.network.tools.say import turn_say_tool

CONVERSATION_TYPE = "conversation"
"""The name of the type."""

_RECENT = 10


@dataclass(frozen=True, slots=True)
class ConversationState(FoldedState):
    """The number of texts and the last speaker."""

    turn_count: int = 0
    last_speaker_id: str | None = None
    last_envelope_id: str | None = None


class ConversationAdapter(TextChannelAdapter):
    """Two participants in any order: each text opens a turn for the other one."""

    state_type = ConversationState
    manifest = ChannelManifest(
        type=CONVERSATION_TYPE,
        participants=ParticipantSchema(min=2, max=2, roles=["initiator", "respondent"]),
        default_view_policy=WindowedSummary.name,
        expectations=[Expectation("max_silence", "audit", {"seconds": 3600})],
    )

    def initial_state(self, metadata: ChannelMetadata) -> ConversationState:
        """No texts yet."""
        return ConversationState()

    def validate_send(
        self, metadata: ChannelMetadata, envelope: Envelope, state: ConversationState
    ) -> None:
        """Both participants may send at any time."""
        self.check_turn(metadata, envelope)

    def fold(self, envelope: Envelope, state: ConversationState) -> ConversationState:
        """Count a text and remember who spoke."""
        if envelope.event_type != EV_TEXT:
            return state
        return ConversationState(state.turn_count + 1, envelope.sender_id, envelope.envelope_id)

    def expected_next(
        self, metadata: ChannelMetadata, state: ConversationState
    ) -> ExpectedTurn | None:
        """None: both may speak."""
        return None

    def next_turn(
        self, metadata: ChannelMetadata, envelope: Envelope, state: ConversationState
    ) -> ExpectedTurn | None:
        """The other participant, who may stay silent."""
        if envelope.event_type != EV_TEXT:
            return None
        audience, sender_id = envelope.audience, envelope.sender_id
        for participant in metadata.participants:
            agent_id = participant.agent_id
            if agent_id != sender_id and (audience is None or agent_id in audience):
                return ExpectedTurn(agent_id, envelope.envelope_id)
        return None

    def tools_for(
        self, client: Any, metadata: ChannelMetadata, state: ConversationState, participant_id: str
    ) -> list[Any]:
        """`say`: both may speak at any time."""
        return [turn_say_tool()]

    def default_view_policy(self, metadata: ChannelMetadata, participant_id: str) -> ViewPolicy:
        """The newest ten messages."""
        return WindowedSummary(_RECENT)
