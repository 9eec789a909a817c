"""What passes between a hub and whoever runs a participant's rounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRef:
    """One attempt of one turn; every write of the turn names it, so that no other may write."""

    turn_id: str
    channel_id: str
    attempt: int
    owner_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedChange:
    """A change that an attempt made before its packet: `{"set", "delete"}` or `{"close"}`."""

    attempt: int
    call_key: str | None
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedTurn:
    """A turn that was started for its participant.

    Attributes:
        ref: names this attempt in everything the round writes.
        agent_id: whose turn it is.
        n: the how-manieth turn of its channel it is, from 1.
        trigger: the envelope that it answers; `None` where there is none.
        metadata: the channel, as it was when the turn was started.
        state: the channel's folded state; not to be changed.
        seq: the newest entry of the log.
        spoken: how many texts and packets the log has.
        staged: what earlier attempts staged, in order.
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
        """The id of the turn, which is the run of its tool calls."""
        return self.ref.turn_id

    @property
    def channel_id(self) -> str:
        """The channel."""
        return self.ref.channel_id

    @property
    def attempt(self) -> int:
        """1, or higher when the turn is run again."""
        return self.ref.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTurn:
    """A turn that has not ended; `expected_at` is when it may be started, in ISO 8601."""

    channel_id: str
    triggering_envelope_id: str | None
    expected_at: str
    turn_id: str = ""
    state: str = "due"


RunTurn = Callable[[StartedTurn], Awaitable[None]]
"""Runs one round; returns when the hub has been told how it ended."""


class Receiver(Protocol):
    """What a client attaches to a hub for one participant."""

    @property
    def run_turn(self) -> RunTurn | None:
        """Runs one round; `None` where nobody but a person can take the turn."""
        ...

    async def deliver(self, envelope: Envelope) -> None:
        """Take an envelope that the participant may see; called in the order of the log."""
        ...
