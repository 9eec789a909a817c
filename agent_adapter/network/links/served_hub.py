"""`ServedHub`: a hub of this process, as those see it who offer it to other processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.events.feed import EventFeed
from agent_adapter.network.identity import AuthBlock, Passport, Resume
from agent_adapter.network.links.local import InProcessHub
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import Receiver, TurnRef


class ServedHub(InProcessHub, Protocol):
    """`Hub`, which is not imported here: it serves endpoints itself."""

    feed: EventFeed

    async def register_identity(
        self,
        passport: Passport,
        resume: Resume,
        rule: Rule | None = None,
        *,
        claimed: bool = False,
    ) -> Passport:
        """The passport with its id; `claimed` says that `rule` is the participant's own wish."""
        ...

    async def authenticate(
        self, passport: Passport, auth: AuthBlock, known: Passport | None
    ) -> None:
        """Raises `AuthError` unless `auth` proves that it is `passport`."""
        ...

    def receiver_of(self, agent_id: str) -> Receiver | None:
        """The attached receiver of a participant."""
        ...

    def has_ended(self, ref: TurnRef) -> bool:
        """Whether the end of a running attempt is recorded."""
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
        most_open: int | None = None,
    ) -> ChannelMetadata:
        """Open a channel; `most_open` is how many open ones the creator may have."""
        ...

    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None = None,
        adopted: Collection[str] = (),
        answers: str | None = None,
        label: str | None = None,
    ) -> str:
        """Accept an envelope; `label` taints the channel with it."""
        ...
