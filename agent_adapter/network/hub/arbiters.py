"""Arbiters: decide what a hub admits, by rule or by the program's own policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent_adapter.core.errors import AccessDeniedError, NetworkError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelManifest
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule


@dataclass(frozen=True, slots=True)
class Allow:
    """The request is admitted."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The request is refused with `reason`; `error` is the class raised to the caller."""

    reason: str
    error: type[NetworkError] = AccessDeniedError


Decision = Allow | Deny

ALLOWED = Allow()
"""The one answer that admits."""


@runtime_checkable
class HubArbiter(Protocol):
    """Decides what a hub admits, before anything is written.

    Each method may be `async` or not. Whatever is not an `Allow` refuses: `None`, another object,
    an exception, or no answer within 30 seconds. Methods have no side effects.
    """

    async def authorize_register(self, passport: Passport, resume: Resume, rule: Rule) -> Decision:
        """Whether this participant may register."""
        ...

    async def authorize_channel_open(
        self,
        manifest: ChannelManifest,
        creator: Passport,
        creator_rule: Rule,
        invitees: list[Passport],
        invitee_rules: list[Rule],
        active_creator_channels: int,
    ) -> Decision:
        """Whether `creator` may open such a channel with `invitees`."""
        ...

    async def authorize_send(
        self, envelope: Envelope, sender: Passport, sender_rule: Rule, recipients: list[Passport]
    ) -> Decision:
        """Whether `sender` may send `envelope` to `recipients`."""
        ...

    async def authorize_inbox(
        self, envelope: Envelope, recipient: Passport, recipient_rule: Rule, current_pending: int
    ) -> Decision:
        """Whether one more message may wait for `recipient`."""
        ...

    async def authorize_dispatch(
        self, envelope: Envelope, sender: Passport, recipient: Passport, recipient_rule: Rule
    ) -> Decision:
        """Whether `recipient` takes envelopes of `sender`.

        Unless it does, it is left out of the audience of a message, and is not invited.
        """
        ...

    async def resolve_unknown_audience(
        self, envelope: Envelope, unknown_ids: list[str]
    ) -> list[str] | None:
        """Participants who receive `envelope` in the place of those who are not registered.

        `None` leaves the ids as they are, and the channel refuses the envelope by naming them.
        """
        ...


class BaseHubArbiter:
    """Admits everything, also what rules forbid; override the decisions that matter."""

    async def authorize_register(self, passport: Passport, resume: Resume, rule: Rule) -> Decision:
        """Allows everybody."""
        return ALLOWED

    async def authorize_channel_open(
        self,
        manifest: ChannelManifest,
        creator: Passport,
        creator_rule: Rule,
        invitees: list[Passport],
        invitee_rules: list[Rule],
        active_creator_channels: int,
    ) -> Decision:
        """Allows every channel."""
        return ALLOWED

    async def authorize_send(
        self, envelope: Envelope, sender: Passport, sender_rule: Rule, recipients: list[Passport]
    ) -> Decision:
        """Allows every message."""
        return ALLOWED

    async def authorize_inbox(
        self, envelope: Envelope, recipient: Passport, recipient_rule: Rule, current_pending: int
    ) -> Decision:
        """Allows any number of waiting messages."""
        return ALLOWED

    async def authorize_dispatch(
        self, envelope: Envelope, sender: Passport, recipient: Passport, recipient_rule: Rule
    ) -> Decision:
        """Allows every sender."""
        return ALLOWED

    async def resolve_unknown_audience(
        self, envelope: Envelope, unknown_ids: list[str]
    ) -> list[str] | None:
        """Replaces nobody."""
        return None


GATES = (
    "authorize_register",
    "authorize_channel_open",
    "authorize_send",
    "authorize_inbox",
    "authorize_dispatch",
    "resolve_unknown_audience",
)
"""The methods of an arbiter."""


def checked_arbiter(arbiter: object) -> HubArbiter:
    """`arbiter` itself; `TypeError` names the methods that it lacks."""
    missing = [name for name in GATES if not callable(getattr(arbiter, name, None))]
    if missing or isinstance(arbiter, type):
        lacks = f"lacks {', '.join(missing)}" if missing else "is a class, not an object of it"
        kind = arbiter.__name__ if isinstance(arbiter, type) else type(arbiter).__name__
        raise TypeError(
            f"the arbiter {kind} {lacks}; derive it from RuleBasedArbiter, which enforces rules, "
            "or from BaseHubArbiter, which allows everything"
        )
    return arbiter  # type: ignore[return-value]  # checked
