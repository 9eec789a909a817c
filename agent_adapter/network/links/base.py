"""What a client may ask of a hub, whether it is in this process or behind a wire."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import PendingTurn, Receiver, TurnRef

__all__ = ["HubLike", "Link"]


class HubLike(Protocol):
    """A hub as its clients see it; `Hub` is one, and so is the far end of a `WebSocketLink`."""

    async def register_identity(
        self, passport: Passport, resume: Resume, rule: Rule | None = None
    ) -> Passport:
        """The passport with its id; the same id again for a name that is not connected."""
        ...

    async def unregister(self, agent_id: str) -> None:
        """Forget a participant; its name is free again."""
        ...

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver what comes for a participant to `receiver`, and give it its turns."""
        ...

    async def detach(self, agent_id: str) -> None:
        """Deliver nothing more; the participant stays registered."""
        ...

    async def create_channel(
        self,
        *,
        creator_id: str,
        manifest_type: str,
        manifest_version: int = 1,
        participants: Sequence[str],
        required_acks: int | None = None,
        ttl: str | int | None = None,
        knobs: Mapping[str, Any] | None = None,
        intent: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ChannelMetadata:
        """Open a channel; returns when it is active."""
        ...

    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None = None,
        adopted: Sequence[str] = (),
        answers: str | None = None,
    ) -> str:
        """Accept an envelope; its id.

        `turn` names the round whose packet it is, `answers` the turn that a person answers.
        """
        ...

    async def close_channel(self, channel_id: str, reason: str = "") -> ChannelMetadata:
        """Close a channel; one that has ended stays as it is."""
        ...

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """All about a channel but its messages."""
        ...

    async def list_channels(
        self, *, agent_id: str | None = None, state: Any = None, limit: int = 50
    ) -> list[ChannelMetadata]:
        """Channels, the newest first."""
        ...

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log from its entry `since`, counted from 0, up to and without `until`."""
        ...

    async def window(
        self, channel_id: str, participant_id: str, recent_n: int
    ) -> Sequence[Envelope]:
        """The newest texts and packets that the participant may see, oldest first."""
        ...

    async def get_agent(self, name_or_id: str) -> Passport:
        """The passport of a participant; `NotFoundError` for one that is not known."""
        ...

    async def pending_turns_for(self, agent_id: str) -> list[PendingTurn]:
        """Turns of a participant that have not ended."""
        ...

    async def stage(self, ref: TurnRef, call_key: str | None, body: Mapping[str, Any]) -> None:
        """Keep a change of the running round until its packet."""
        ...

    async def end_silent_turn(self, ref: TurnRef, adopted: Sequence[str] = ()) -> None:
        """End a round that says nothing."""
        ...

    async def park_turn(self, ref: TurnRef, waits_for: Sequence[str]) -> None:
        """Set a turn aside until a person has decided."""
        ...

    async def fail_turn(self, ref: TurnRef, error: BaseException) -> None:
        """Count a failed attempt."""
        ...

    async def release_turn(self, ref: TurnRef) -> None:
        """Give a turn back without counting the attempt."""
        ...


class Link(Protocol):
    """A way to a hub; several clients may share one."""

    def connect(self) -> Awaitable[HubLike]:
        """The hub at its other end, ready to be asked."""
        ...

    async def disconnect(self, hub: HubLike) -> None:
        """Let go of a connection that `connect` made; the hub itself runs on."""
        ...
