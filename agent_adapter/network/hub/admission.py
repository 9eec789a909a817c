"""Admission: checks rules, limits and rates before a hub writes anything."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from agent_adapter.core.errors import AccessDeniedError, InboxFull, NetworkError
from agent_adapter.core.rate import TokenBucket
from agent_adapter.flow.envelope import EV_CHANNEL_INVITE, Envelope
from agent_adapter.network.channels.metadata import ChannelManifest
from agent_adapter.network.hub.arbiters import (
    ALLOWED,
    Allow,
    BaseHubArbiter,
    Decision,
    Deny,
    HubArbiter,
    checked_arbiter,
)
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import InboxBlock, Rule

Arbiter = HubArbiter
"""The first name of `HubArbiter`."""

_GATE_SECONDS = 30.0
_NO_OWN_LIMIT = InboxBlock().max_pending
_log = logging.getLogger("agent_adapter.network")


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


class RuleBasedArbiter(BaseHubArbiter):
    """Decides by the `Rule` of each participant; subclass it to change one decision."""

    async def authorize_channel_open(
        self,
        manifest: ChannelManifest,
        creator: Passport,
        creator_rule: Rule,
        invitees: list[Passport],
        invitee_rules: list[Rule],
        active_creator_channels: int,
    ) -> Decision:
        """Checks both sides' access and channel types, and how many channels the creator has."""
        access = creator_rule.access
        if not allows(access.channel_types.initiate, manifest.type):
            return Deny(f"{creator.name} may not open a {manifest.type!r} channel")
        for invitee, rule in zip(invitees, invitee_rules, strict=True):
            if invitee.agent_id == creator.agent_id:
                continue
            if not allows(access.outbound_to, invitee.name):
                return Deny(f"{creator.name} may not speak to {invitee.name}")
            if not allows(rule.access.inbound_from, creator.name):
                return _takes_none(invitee, creator)
            if not allows(rule.access.channel_types.accept, manifest.type):
                return Deny(f"{invitee.name} takes part in no {manifest.type!r} channel")
        most = creator_rule.limits.max_concurrent_channels
        if 0 < most <= active_creator_channels:
            return Deny(
                f"{creator.name} has {active_creator_channels} channels open and may have {most} "
                "(limits.max_concurrent_channels); close one first"
            )
        return ALLOWED

    async def authorize_send(
        self, envelope: Envelope, sender: Passport, sender_rule: Rule, recipients: list[Passport]
    ) -> Decision:
        """Checks the sender's access and delegation depth."""
        access, deepest = sender_rule.access, sender_rule.limits.delegation_depth
        for recipient in recipients:
            if recipient.agent_id != sender.agent_id and not allows(
                access.outbound_to, recipient.name
            ):
                return Deny(f"{sender.name} may not speak to {recipient.name}")
        if 0 < deepest < envelope.depth:
            return Deny(
                f"{sender.name} may delegate {deepest} deep; this message is {envelope.depth} deep "
                "(limits.delegation_depth)"
            )
        return ALLOWED

    async def authorize_inbox(
        self, envelope: Envelope, recipient: Passport, recipient_rule: Rule, current_pending: int
    ) -> Decision:
        """Checks the recipient's limit of waiting messages."""
        most = recipient_rule.limits.inbox.max_pending
        if 0 < most <= current_pending:
            return Deny(
                f"{current_pending} messages wait for {recipient.name}, who takes {most}: its "
                "inbox at capacity; send again later",
                InboxFull,
            )
        return ALLOWED

    async def authorize_dispatch(
        self, envelope: Envelope, sender: Passport, recipient: Passport, recipient_rule: Rule
    ) -> Decision:
        """Checks the recipient's `inbound_from`."""
        if allows(recipient_rule.access.inbound_from, sender.name):
            return ALLOWED
        return _takes_none(recipient, sender)


def _takes_none(recipient: Passport, sender: Passport) -> Deny:
    return Deny(
        f"{recipient.name} takes no messages of {sender.name}: its rule does not accept inbound "
        "ones from there (access.inbound_from)"
    )


class Admission:
    """The checks of a hub before it writes: the arbiter's decisions and the rate limits.

    Each `check_…` method raises the error of the first refusal. Its only side effect is the count
    of the rate limit.

    Attributes:
        arbiter: decides.
        rates: the messages that each participant may still send.
        on_pressure: called when an inbox reaches its mark, with the number of waiting messages.
    """

    def __init__(
        self, arbiter: HubArbiter | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.arbiter: HubArbiter = RuleBasedArbiter()
        if arbiter is not None:
            self.replace_arbiter(arbiter)
        self.rates = TokenBucket(clock=clock)
        self.on_pressure: Callable[[Registration, int], None] = lambda recipient, waiting: None

    def replace_arbiter(self, arbiter: HubArbiter) -> None:
        """Ask `arbiter` from now on; `TypeError` if it lacks a method."""
        self.arbiter = checked_arbiter(arbiter)

    async def check_register(self, newcomer: Registration) -> None:
        """Refuse a registration."""
        ask = self.arbiter.authorize_register
        _raise(await self._asked(ask, newcomer.passport, newcomer.resume, newcomer.rule))

    async def check_open(
        self,
        manifest: ChannelManifest,
        creator: Registration,
        invitees: Sequence[Registration],
        active_creator_channels: int,
        *,
        again: bool = False,
    ) -> None:
        """Refuse the opening of a channel; opening one counts as a message for the rate.

        Asked `again` about the same opening, with another number of channels, it counts once.
        """
        arbiter = self.arbiter
        decision = await self._asked(
            arbiter.authorize_channel_open,
            manifest,
            creator.passport,
            creator.rule,
            [item.passport for item in invitees],
            [item.rule for item in invitees],
            active_creator_channels,
        )
        _raise(decision)
        for invitee in invitees:
            # Whom the invitation does not reach cannot agree, and the opener would wait for it.
            invite = Envelope("", creator.agent_id, [invitee.agent_id], EV_CHANNEL_INVITE, {})
            _raise(await self._dispatch(invite, creator, invitee))
        if not again:
            self._check_rate(creator)

    def counts_channels(self, creator: Registration) -> bool:
        """Whether it matters how many channels the participant has open."""
        limited = creator.rule.limits.max_concurrent_channels > 0
        return limited or type(self.arbiter) is not RuleBasedArbiter

    async def check_post(
        self,
        envelope: Envelope,
        sender: Registration,
        others: Sequence[Registration],
        pending: Mapping[str, int],
        *,
        unknown: Sequence[str] = (),
        in_turn: bool = False,
    ) -> Envelope:
        """The admitted envelope: recipients who block the sender are removed from its audience.

        `others` are the channel's participants except the sender; `pending` counts the waiting
        messages per recipient; `unknown` are ids of the audience that are registered nowhere. A
        message `in_turn` does not count for the rate.
        """
        if unknown:
            envelope = await self._resolved(envelope, unknown)
        audience = envelope.audience
        recipients = [item for item in others if audience is None or item.agent_id in audience]
        passports = [item.passport for item in recipients]
        ask = self.arbiter.authorize_send
        _raise(await self._asked(ask, envelope, sender.passport, sender.rule, passports))
        blocked = set()
        for recipient in recipients:
            if not isinstance(await self._dispatch(envelope, sender, recipient), Allow):
                blocked.add(recipient.agent_id)
                continue
            await self._check_inbox(envelope, recipient, pending)
        if not in_turn:
            self._check_rate(sender)
        if not blocked:
            return envelope
        kept = [item.agent_id for item in recipients] if audience is None else audience
        return replace(envelope, audience=[item for item in kept if item not in blocked])

    async def check_answer(self, envelope: Envelope, sender: Registration) -> None:
        """Refuse an answer to an invitation."""
        ask = self.arbiter.authorize_send
        _raise(await self._asked(ask, envelope, sender.passport, sender.rule, []))

    async def _check_inbox(
        self, envelope: Envelope, recipient: Registration, pending: Mapping[str, int]
    ) -> None:
        inbox = recipient.rule.limits.inbox
        # What a person has not read yet is in the log, and keeps nobody from going on. A limit of
        # their own holds for a program of theirs that does not take its messages.
        free = recipient.passport.kind == "human" and inbox.max_pending == _NO_OWN_LIMIT
        waiting = 0 if free else pending.get(recipient.agent_id, 0)
        ask = self.arbiter.authorize_inbox
        whose = (recipient.passport, recipient.rule)
        _raise(await self._asked(ask, envelope, *whose, waiting))
        # Without a mark of its own there is no pressure below half of the limit.
        near = inbox.high_water is not None or 2 * waiting >= inbox.max_pending
        if near and waiting + 1 == inbox.pressure_at():
            self.on_pressure(recipient, waiting + 1)

    async def _dispatch(
        self, envelope: Envelope, sender: Registration, recipient: Registration
    ) -> Decision:
        ask = self.arbiter.authorize_dispatch
        whose = (recipient.passport, recipient.rule)
        return await self._asked(ask, envelope, sender.passport, *whose)

    async def _resolved(self, envelope: Envelope, unknown: Sequence[str]) -> Envelope:
        """The envelope for those whom the arbiter names in the place of `unknown`."""
        found = await self._answer(self.arbiter.resolve_unknown_audience, envelope, list(unknown))
        if isinstance(found, Deny):
            _raise(found)
        if found is None:
            return envelope
        if not isinstance(found, (list, tuple)) or not all(isinstance(id, str) for id in found):
            raise AccessDeniedError(
                f"the arbiter's resolve_unknown_audience returned a {type(found).__name__}; it "
                "returns a list of ids, or None"
            )
        known = [item for item in envelope.audience or () if item not in unknown]
        return replace(envelope, audience=[*known, *found])

    async def _asked(self, gate: Callable[..., Any], *about: Any) -> Decision:
        """The decision of one method of the arbiter; whatever is not one denies."""
        found = await self._answer(gate, *about)
        if isinstance(found, (Allow, Deny)):
            return found
        name = getattr(gate, "__name__", "the gate")
        said = "None" if found is None else f"a {type(found).__name__}"
        _log.error("the arbiter's %s returned %s, which refuses", name, said)
        return Deny(f"the arbiter's {name} returned {said}; only Allow() admits")

    async def _answer(self, gate: Callable[..., Any], *about: Any) -> Any:
        """What the method returns or, if it is async, what it comes to; `Deny` if it fails."""
        name = getattr(gate, "__name__", "the gate")
        try:
            if type(self.arbiter) is RuleBasedArbiter:
                return await gate(*about)
            found = gate(*about)
            if inspect.isawaitable(found):
                async with asyncio.timeout(_GATE_SECONDS):
                    found = await found
        except NetworkError as exc:
            error = type(exc) if exc.args == (str(exc),) else AccessDeniedError
            return Deny(str(exc), error)
        except Exception as exc:
            _log.exception("the arbiter's %s failed, which refuses", name)
            return Deny(f"the arbiter's {name} failed ({type(exc).__name__}), which refuses")
        return found

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


def allows(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the globs matches `name`; case-sensitive."""
    return "*" in patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _raise(decision: Decision) -> None:
    if isinstance(decision, Allow):
        return
    error: Any = decision.error
    if not (isinstance(error, type) and issubclass(error, NetworkError)):
        error = AccessDeniedError
    raise error(str(decision.reason or "the arbiter refused"))
