"""Values and protocols between a hub and the runner of a participant's turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRef:
    """One attempt of one turn; each write of a round names it, and the hub refuses all others."""

    turn_id: str
    channel_id: str
    attempt: int
    owner_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedChange:
    """A change that an attempt staged before its packet: `{"set", "delete"}`, a text, a close."""

    attempt: int
    call_key: str | None
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedTurn:
    """A turn started for its participant.

    Attributes:
        ref: identifies this attempt in every write of the round.
        agent_id: the participant's id.
        n: the ordinal of the turn in its channel, from 1.
        trigger: the envelope that it answers; `None` if there is none.
        metadata: the channel's metadata when the turn started.
        state: the channel's folded state; read-only.
        seq: the sequence number of the newest log entry.
        spoken: the number of texts and packets in the log.
        staged: the changes that earlier attempts staged, in order.
    """

    ref: TurnRef
    agent_id: str
    n: int
    trigger: Envelope | None
    metadata: ChannelMetadata
    state: Any
    seq: int
    spoken: int
    staged: tuple[StagedChange, ...] = ()

    @property
    def turn_id(self) -> str:
        """The id of the turn; also the run id of its tool calls."""
        return self.ref.turn_id

    @property
    def channel_id(self) -> str:
        """The channel's id."""
        return self.ref.channel_id

    @property
    def attempt(self) -> int:
        """1, or higher for a repeated attempt."""
        return self.ref.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTurn:
    """A turn that has not ended; `expected_at` is its due or start time in ISO 8601."""

    channel_id: str
    triggering_envelope_id: str | None
    expected_at: str
    turn_id: str = ""
    state: str = "due"


RunTurn = Callable[[StartedTurn], Awaitable[None]]
"""Runs one round; returns after the hub has recorded how it ended."""


class Receiver(Protocol):
    """Receives the envelopes and runs the turns of one attached participant."""

    @property
    def run_turn(self) -> RunTurn | None:
        """Runs one round; `None` if only a person can take the turn."""
        ...

    async def deliver(self, envelope: Envelope, seq: int) -> None:
        """Receive an envelope that the participant may see; called in the order of the log.

        `seq` is its sequence number in the log of its channel.
        """
        ...
