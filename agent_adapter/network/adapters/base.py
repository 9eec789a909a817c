"""`ChannelAdapter`: a channel type as pure code over metadata, an envelope and a folded state."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.routing import Handoff
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_EXPIRED,
    EV_CHANNEL_INVITE,
    EV_CHANNEL_OPENED,
    EV_CONTEXT_SET,
    EV_EXPECTATION_VIOLATED,
    EV_PACKET,
    EV_TEXT,
    Envelope,
    envelope_problems,
)
from agent_adapter.flow.routing import RoundCall
from agent_adapter.network.adapters.defaults import (
    default_build_packet_envelope as default_build_packet_envelope,
)
from agent_adapter.network.adapters.defaults import (
    default_build_text_envelope as default_build_text_envelope,
)
from agent_adapter.network.adapters.defaults import (
    default_expected_next as default_expected_next,
)
from agent_adapter.network.adapters.defaults import (
    default_tools_for as default_tools_for,
)
from agent_adapter.network.adapters.defaults import (
    text_of as text_of,
)
from agent_adapter.network.channels.metadata import ChannelManifest, ChannelMetadata, ChannelState
from agent_adapter.network.channels.views import NamedWindowedSummary, ViewPolicy
from agent_adapter.network.compat.ag2_parts import (
    Rendered as Rendered,
)
from agent_adapter.network.compat.ag2_parts import (
    default_build_round_envelope as default_build_round_envelope,
)
from agent_adapter.network.compat.ag2_parts import (
    default_extract_turn_input as default_extract_turn_input,
)
from agent_adapter.network.compat.ag2_parts import (
    default_render_envelope as default_render_envelope,
)
from agent_adapter.network.compat.ag2_parts import (
    ensure_parts as ensure_parts,
)

HUB_EVENTS = frozenset(
    {
        EV_CHANNEL_INVITE,
        EV_CHANNEL_OPENED,
        EV_CHANNEL_CLOSED,
        EV_CHANNEL_EXPIRED,
        EV_EXPECTATION_VIOLATED,
    }
)
"""Events that only the hub writes."""

AdapterState = Any
"""The folded state of a channel, opaque to everything but its adapter."""


@dataclass(frozen=True, slots=True)
class AdapterResult:
    """The consequence of an accepted envelope; `None` leaves the channel's state unchanged."""

    next_state: ChannelState | None = None
    auto_close_reason: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedTurn:
    """The participant whose turn is next, and the envelope that caused it (`None` at the start)."""

    agent_id: str
    triggering_envelope_id: str | None = None


class ChannelAdapter(Protocol):
    """One channel type: deterministic code without I/O and without per-channel state.

    Only its checks, `validate_create` and `validate_send`, may be async and look something up.
    """

    @property
    def manifest(self) -> ChannelManifest:
        """The type as data; the adapter is registered under `(type, version)`."""
        ...

    def validate_create(self, metadata: ChannelMetadata) -> Awaitable[None] | None:
        """Raises `ProtocolError` for invalid participants, roles or knobs."""
        ...

    def initial_state(self, metadata: ChannelMetadata) -> AdapterState:
        """The state before the first envelope."""
        ...

    def validate_send(
        self, metadata: ChannelMetadata, envelope: Envelope, state: AdapterState
    ) -> Awaitable[None] | None:
        """Raises `ProtocolError` for an envelope that `state` (before it) does not allow."""
        ...

    def fold(self, envelope: Envelope, state: AdapterState) -> AdapterState:
        """The state after `envelope`; `state` itself is not changed."""
        ...

    def on_accepted(
        self, metadata: ChannelMetadata, envelope: Envelope, state: AdapterState
    ) -> AdapterResult:
        """The consequence of `envelope`; `state` is the state after it."""
        ...

    def expected_next(self, metadata: ChannelMetadata, state: AdapterState) -> ExpectedTurn | None:
        """The only participant who may take the next turn; `None` if there is no such one."""
        ...

    def next_turn(
        self, metadata: ChannelMetadata, envelope: Envelope, state: AdapterState
    ) -> ExpectedTurn | None:
        """The turn that `envelope` causes; `state` is the state after it.

        If turns have an order, it is `expected_next`. In a channel without an order it is the turn
        of a recipient, who may stay silent.
        """
        ...

    def default_view_policy(self, metadata: ChannelMetadata, participant_id: str) -> ViewPolicy:
        """The view of a participant that has not chosen another one."""
        ...

    def render_envelope(self, envelope: Envelope) -> str | None:
        """The text of `envelope` for a speaker; `None` if it has none."""
        ...

    def tools_for(
        self, client: Any, metadata: ChannelMetadata, state: AdapterState, participant_id: str
    ) -> list[Any]:
        """Tools that the channel type adds to a speaker's own during a turn."""
        ...

    def build_round_envelope(
        self,
        metadata: ChannelMetadata,
        sender_id: str,
        body: str,
        calls: Iterable[RoundCall],
        state: AdapterState,
        *,
        causation_id: str | None = None,
    ) -> Envelope | None:
        """The envelope of a speaker's whole round; `None` for a silent round.

        Raises `ToolError` for a handoff to a stranger.
        """
        ...

    def build_text_envelope(
        self,
        channel_id: str,
        sender_id: str,
        text: str,
        *,
        audience: Sequence[str] | None = None,
        causation_id: str | None = None,
    ) -> Envelope:
        """The envelope of a text in this channel type."""
        ...

    def build_packet_envelope(
        self,
        channel_id: str,
        sender_id: str,
        body: str,
        *,
        handoff: Handoff | None = None,
        context_set: Mapping[str, Any] | None = None,
        audience: Sequence[str] | None = None,
        causation_id: str | None = None,
    ) -> Envelope:
        """The envelope of a whole round in this channel type, for a program without an agent."""
        ...

    def state_to_dict(self, state: AdapterState) -> dict[str, Any]:
        """The state as JSON, without data that the metadata contains."""
        ...

    def state_from_dict(self, metadata: ChannelMetadata, data: Mapping[str, Any]) -> AdapterState:
        """The state that `state_to_dict` wrote."""
        ...


def check_message(metadata: ChannelMetadata, envelope: Envelope) -> None:
    """Raises `ProtocolError` for an envelope that no channel type accepts.

    That is one from a stranger, with an event that only the hub writes, with a stranger in its
    audience, or with malformed data.
    """
    ids = [item.agent_id for item in metadata.participants]
    if envelope.sender_id not in ids:
        raise ProtocolError(
            f"{envelope.sender_id!r} does not take part in {_channel(metadata)}, which only "
            f"accepts sends from participants: {', '.join(metadata.names().values())}"
        )
    if envelope.event_type in HUB_EVENTS:
        raise ProtocolError(
            f"{envelope.event_type!r} is written by the hub alone; to close a channel, call "
            "channel.close(reason)"
        )
    strangers = [item for item in envelope.audience or () if item not in ids]
    if strangers:
        raise ProtocolError(
            f"the audience has {', '.join(map(repr, strangers))}, who takes no part in "
            f"{_channel(metadata)}; its participants' ids are {', '.join(ids)}"
        )
    problems = []
    if envelope.event_type != EV_TEXT:
        problems = envelope_problems(envelope)
    elif not isinstance(envelope.event_data.get("text"), str):
        problems.append('event_data is {"text": …}, a text')
    if envelope.ttl_seconds is not None:
        problems.append("ttl_seconds is None: a message stays in its channel, whose ttl ends both")
    if problems:
        raise ProtocolError(f"the {envelope.event_type} is malformed: {'; '.join(problems)}")


@runtime_checkable
class RouteChecker(Protocol):
    """A channel type in which participants' variables decide who gets the turn."""

    def check_routes(
        self, metadata: ChannelMetadata, privileged: frozenset[str]
    ) -> Awaitable[None] | None:
        """Raises `ProtocolError` if everybody could give a privileged participant the turn."""
        ...


class BaseChannelAdapter:
    """What all built-in channel types have in common."""

    manifest: ChannelManifest

    def next_turn(
        self, metadata: ChannelMetadata, envelope: Envelope, state: AdapterState
    ) -> ExpectedTurn | None:
        """The expected participant."""
        return self.expected_next(metadata, state)

    def expected_next(self, metadata: ChannelMetadata, state: AdapterState) -> ExpectedTurn | None:
        """The participant that the state names."""
        if state.expected_next_speaker is None:
            return None
        return ExpectedTurn(state.expected_next_speaker, state.last_envelope_id)

    def default_view_policy(self, metadata: ChannelMetadata, participant_id: str) -> ViewPolicy:
        """The newest messages, twice as many as there are participants, with names."""
        return NamedWindowedSummary(max(2 * len(metadata.participants), 4))

    def tools_for(
        self, client: Any, metadata: ChannelMetadata, state: AdapterState, participant_id: str
    ) -> list[Any]:
        """None: the participants' own tools suffice."""
        return []

    def build_text_envelope(
        self,
        channel_id: str,
        sender_id: str,
        text: str,
        *,
        audience: Sequence[str] | None = None,
        causation_id: str | None = None,
    ) -> Envelope:
        """An `EV_TEXT`."""
        return default_build_text_envelope(
            channel_id, sender_id, text, audience=audience, causation_id=causation_id
        )

    def build_packet_envelope(
        self,
        channel_id: str,
        sender_id: str,
        body: str,
        *,
        handoff: Handoff | None = None,
        context_set: Mapping[str, Any] | None = None,
        audience: Sequence[str] | None = None,
        causation_id: str | None = None,
    ) -> Envelope:
        """An `EV_PACKET`."""
        return default_build_packet_envelope(
            channel_id,
            sender_id,
            body,
            handoff=handoff,
            context_set=context_set,
            audience=audience,
            causation_id=causation_id,
        )


class TextChannelAdapter(BaseChannelAdapter):
    """Base of channel types whose turns are plain texts; `state_type` is their state."""

    state_type: ClassVar[type[Any]]

    def validate_create(self, metadata: ChannelMetadata) -> None:
        """`ProtocolError` for too few or too many participants, or one listed twice."""
        check_participants(self.manifest, metadata)

    def check_turn(self, metadata: ChannelMetadata, envelope: Envelope) -> bool:
        """Whether `envelope` takes a turn; `ProtocolError` for an event of other channel types."""
        check_message(metadata, envelope)
        if envelope.event_type in (EV_CONTEXT_SET, EV_PACKET):
            raise ProtocolError(
                f"{_channel(metadata)} takes no {envelope.event_type!r}; only a 'workflow' channel "
                f"does, here participants send {EV_TEXT!r}"
            )
        return envelope.event_type == EV_TEXT

    render_envelope = staticmethod(text_of)

    def on_accepted(
        self, metadata: ChannelMetadata, envelope: Envelope, state: AdapterState
    ) -> AdapterResult:
        """Nothing: the channel ends when it is closed or expires."""
        return AdapterResult()

    def state_to_dict(self, state: AdapterState) -> dict[str, Any]:
        """The fields of the state."""
        return asdict(state)

    def state_from_dict(self, metadata: ChannelMetadata, data: Mapping[str, Any]) -> AdapterState:
        """The state that `state_to_dict` wrote."""
        return self.state_type(**data)

    def build_round_envelope(
        self,
        metadata: ChannelMetadata,
        sender_id: str,
        body: str,
        calls: Iterable[RoundCall],
        state: AdapterState,
        *,
        causation_id: str | None = None,
    ) -> Envelope | None:
        """The body as an `EV_TEXT`; tool calls do not route."""
        if not body:
            return None
        return self.build_text_envelope(
            metadata.channel_id, sender_id, body, causation_id=causation_id
        )


def check_participants(manifest: ChannelManifest, metadata: ChannelMetadata) -> None:
    """Raises `ProtocolError` for a number of participants or a role that `manifest` excludes."""
    ids, schema = metadata.participant_ids(), manifest.participants
    twice = sorted({item for item in ids if ids.count(item) > 1})
    if twice:
        names = metadata.names()
        raise ProtocolError(
            f"{', '.join(names[item] for item in twice)} takes part twice; list each participant "
            "once, and not the opener"
        )
    if len(ids) < schema.min or (schema.max is not None and len(ids) > schema.max):
        number = f"exactly {schema.min}" if schema.max == schema.min else f"at least {schema.min}"
        raise ProtocolError(
            f"a {manifest.type} channel has {number} participants, the opener included, "
            f"not {len(ids)}{'' if len(ids) > 1 else '; invite at least one'}"
        )
    roles = [item.role.value for item in metadata.participants]
    unknown = sorted(set(roles) - set(schema.roles)) if schema.roles else []
    if unknown:
        raise ProtocolError(
            f"a {manifest.type} channel has the roles {', '.join(schema.roles)}, and this one has "
            f"{', '.join(unknown)}: two participants are initiator and respondent, more are "
            "initiator and participants"
        )


def _channel(metadata: ChannelMetadata) -> str:
    return f"the {metadata.manifest.type} channel {metadata.channel_id}"
