"""Admission: checks rules, limits and rates before a hub writes anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Protocol

from agent_adapter.core.errors import AccessDeniedError, InboxFull, NetworkError
from agent_adapter.core.rate import TokenBucket
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelManifest
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered participant with its résumé and rule.

    Attributes:
        passport: the participant's identity record.
        resume: the participant's capabilities.
        rule: the participant's permissions and limits.
        agent_id: the id assigned by the hub; empty before registration.
        name: the Passport name.
    """

    passport: Passport
    resume: Resume = field(default_factory=Resume)
    rule: Rule = field(default_factory=Rule)
    agent_id: str = field(init=False, repr=False)
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent_id", self.passport.agent_id or "")
        object.__setattr__(self, "name", self.passport.name)


@dataclass(frozen=True, slots=True)
class Allow:
    """The request is admitted."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The request is refused with `reason`; `error` is the class raised to the caller."""

    reason: str
    error: type[NetworkError] = AccessDeniedError


Decision = Allow | Deny

_ALLOWED = Allow()


class Arbiter(Protocol):
    """Decides what a hub admits; methods must be fast and free of side effects."""

    def authorize_register(self, newcomer: Registration) -> Decision:
        """Whether `newcomer` may register."""
        ...

    def authorize_channel_open(
        self,
        manifest: ChannelManifest,
        creator: Registration,
        invitees: Sequence[Registration],
        active_creator_channels: int,
    ) -> Decision:
        """Whether `creator` may open such a channel with `invitees`."""
        ...

    def authorize_send(
        self, envelope: Envelope, sender: Registration, recipients: Sequence[Registration]
    ) -> Decision:
        """Whether `sender` may send `envelope` to `recipients`."""
        ...

    def authorize_inbox(
        self, envelope: Envelope, recipient: Registration, current_pending: int
    ) -> Decision:
        """Whether one more message may wait for `recipient`."""
        ...

    def authorize_dispatch(
        self, envelope: Envelope, sender: Registration, recipient: Registration
    ) -> Decision:
        """Whether `recipient` accepts envelopes of `sender`; if not, it is left out silently."""
        ...


class RuleBasedArbiter:
    """Decides by the `Rule` of each participant; subclass it to change one decision."""

    def authorize_register(self, newcomer: Registration) -> Decision:
        """Allows everybody."""
        return _ALLOWED

    def authorize_channel_open(
        self,
        manifest: ChannelManifest,
        creator: Registration,
        invitees: Sequence[Registration],
        active_creator_channels: int,
    ) -> Decision:
        """Checks both sides' access and channel types, and how many channels the creator has."""
        access, limits = creator.rule.access, creator.rule.limits
        if not allows(access.channel_types.initiate, manifest.type):
            return Deny(f"{creator.name} may not open a {manifest.type!r} channel")
        for invitee in invitees:
            if invitee.agent_id == creator.agent_id:
                continue
            theirs = invitee.rule.access
            if not allows(access.outbound_to, invitee.name):
                return Deny(f"{creator.name} may not speak to {invitee.name}")
            if not allows(theirs.inbound_from, creator.name):
                return Deny(f"{invitee.name} takes no messages of {creator.name}")
            if not allows(theirs.channel_types.accept, manifest.type):
                return Deny(f"{invitee.name} takes part in no {manifest.type!r} channel")
        most = limits.max_concurrent_channels
        if 0 < most <= active_creator_channels:
            return Deny(
                f"{creator.name} has {active_creator_channels} channels open and may have {most}; "
                "close one first"
            )
        return _ALLOWED

    def authorize_send(
        self, envelope: Envelope, sender: Registration, recipients: Sequence[Registration]
    ) -> Decision:
        """Checks the sender's access and delegation depth."""
        access, deepest = sender.rule.access, sender.rule.limits.delegation_depth
        for recipient in recipients:
            if recipient.agent_id != sender.agent_id and not allows(
                access.outbound_to, recipient.name
            ):
                return Deny(f"{sender.name} may not speak to {recipient.name}")
        if 0 < deepest < envelope.depth:
            return Deny(
                f"{sender.name} may delegate {deepest} deep; this message is {envelope.depth} deep"
            )
        return _ALLOWED

    def authorize_inbox(
        self, envelope: Envelope, recipient: Registration, current_pending: int
    ) -> Decision:
        """Checks the recipient's limit of waiting messages."""
        most = recipient.rule.limits.inbox.max_pending
        if 0 < most <= current_pending:
            return Deny(
                f"{current_pending} messages wait for {recipient.name}, who takes {most}; "
                "send again later",
                InboxFull,
            )
        return _ALLOWED

    def authorize_dispatch(
        self, envelope: Envelope, sender: Registration, recipient: Registration
    ) -> Decision:
        """Checks the recipient's `inbound_from`."""
        if allows(recipient.rule.access.inbound_from, sender.name):
            return _ALLOWED
        return Deny(f"{recipient.name} takes no messages of {sender.name}")


class Admission:
    """The checks of a hub before it writes: the arbiter's decisions and the rate limits.

    Each `check_…` method raises the error of the first refusal. Its only side effect is the count
    of the rate limit.
    """

    def __init__(
        self, arbiter: Arbiter | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.arbiter: Arbiter = arbiter if arbiter is not None else RuleBasedArbiter()
        self.rates = TokenBucket(clock=clock)

    def check_register(self, newcomer: Registration) -> None:
        """Refuse a registration."""
        _raise(self.arbiter.authorize_register(newcomer))

    def check_open(
        self,
        manifest: ChannelManifest,
        creator: Registration,
        invitees: Sequence[Registration],
        active_creator_channels: int,
    ) -> None:
        """Refuse the opening of a channel; opening one counts as a message for the rate."""
        decision = self.arbiter.authorize_channel_open(
            manifest, creator, invitees, active_creator_channels
        )
        _raise(decision)
        self._check_rate(creator)

    def check_post(
        self,
        envelope: Envelope,
        sender: Registration,
        others: Sequence[Registration],
        pending: Mapping[str, int],
        *,
        in_turn: bool = False,
    ) -> Envelope:
        """The admitted envelope: recipients who block the sender are removed from its audience.

        `others` are the channel's participants except the sender; `pending` counts the waiting
        messages per recipient. A message `in_turn` does not count for the rate.
        """
        audience = envelope.audience
        recipients = [item for item in others if audience is None or item.agent_id in audience]
        _raise(self.arbiter.authorize_send(envelope, sender, recipients))
        admitted = []
        for recipient in recipients:
            if isinstance(self.arbiter.authorize_dispatch(envelope, sender, recipient), Deny):
                continue
            waiting = pending.get(recipient.agent_id, 0)
            _raise(self.arbiter.authorize_inbox(envelope, recipient, waiting))
            admitted.append(recipient.agent_id)
        if not in_turn:
            self._check_rate(sender)
        if len(admitted) == len(recipients):
            return envelope
        return replace(envelope, audience=admitted)

    def _check_rate(self, sender: Registration) -> None:
        rate = sender.rule.limits.rate
        if rate.per_minute <= 0:
            return
        seconds = self.rates.wait(
            sender.agent_id, burst=rate.burst or rate.per_minute, per_minute=rate.per_minute
        )
        if seconds:
            raise AccessDeniedError(
                f"{sender.name} may send {rate.per_minute} messages a minute; "
                f"the next one in {seconds:.1f} s"
            )


def allows(patterns: list[str], name: str) -> bool:
    """Whether one of the globs matches `name`; case-sensitive."""
    return "*" in patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _raise(decision: Decision) -> None:
    if isinstance(decision, Deny):
        raise decision.error(decision.reason)
