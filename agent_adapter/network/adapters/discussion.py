"""`discussion`: several participants who speak in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.flow.state import FoldedState
from agent_adapter.network.adapters.base import TextChannelAdapter
from agent_adapter.network.channels.metadata import (
    ChannelManifest,
    ChannelMetadata,
    Expectation,
    ParticipantSchema,
)
from agent_adapter.network.channels.views import NamedWindowedSummary

DISCUSSION_TYPE = "discussion"
"""The name of the type."""

ORDERING_ROUND_ROBIN = "round_robin"
"""The only order: the opener first, then the participants as listed."""


@dataclass(frozen=True, slots=True)
class DiscussionState(FoldedState):
    """Whose turn it is, and how many there were."""

    participant_order: list[str] = field(default_factory=list)
    expected_next_speaker: str | None = None
    last_speaker_id: str | None = None
    last_envelope_id: str | None = None
    turn_count: int = 0


class DiscussionAdapter(TextChannelAdapter):
    """Two or more participants who speak in a fixed order, again and again."""

    state_type = DiscussionState
    manifest = ChannelManifest(
        type=DISCUSSION_TYPE,
        participants=ParticipantSchema(min=2),
        knobs_schema={"ordering": "str"},
        default_view_policy=NamedWindowedSummary.name,
        expectations=[
            Expectation("turn_within", "warn", {"seconds": 120}),
            Expectation("turn_within", "hide", {"seconds": 600}),
        ],
    )

    def validate_create(self, metadata: ChannelMetadata) -> None:
        """Raises `ProtocolError` for an `ordering` other than round robin."""
        TextChannelAdapter.validate_create(self, metadata)
        ordering = metadata.knobs.get("ordering", ORDERING_ROUND_ROBIN)
        if ordering != ORDERING_ROUND_ROBIN:
            raise ProtocolError(
                f"knobs['ordering'] of a discussion is {ORDERING_ROUND_ROBIN!r}, not {ordering!r}; "
                "a 'workflow' channel takes any order"
            )

    def initial_state(self, metadata: ChannelMetadata) -> DiscussionState:
        """The opener speaks first."""
        return DiscussionState(metadata.participant_ids(), metadata.creator_id)

    def validate_send(
        self, metadata: ChannelMetadata, envelope: Envelope, state: DiscussionState
    ) -> None:
        """Raises `ProtocolError` for a text out of turn."""
        expected = state.expected_next_speaker
        if self.check_turn(metadata, envelope) and envelope.sender_id != expected:
            names = metadata.names()
            whose = _named(expected, names) if expected in names else "no one"
            raise ProtocolError(
                f"the discussion expects {whose} to speak, not {names[envelope.sender_id]} "
                f"({envelope.sender_id})"
            )

    def fold(self, envelope: Envelope, state: DiscussionState) -> DiscussionState:
        """The next participant in order is expected."""
        order = state.participant_order
        if envelope.event_type != EV_TEXT or envelope.sender_id not in order:
            return state
        after = (order.index(envelope.sender_id) + 1) % len(order)
        return DiscussionState(
            order, order[after], envelope.sender_id, envelope.envelope_id, state.turn_count + 1
        )


def _named(agent_id: str, names: dict[str, str]) -> str:
    name = names[agent_id]
    return repr(name) if name == agent_id else f"{name} ({agent_id})"
