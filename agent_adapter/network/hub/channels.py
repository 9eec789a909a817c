"""`Channels`: opens, reads, changes, closes and forks a hub's channels."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from agent_adapter.core.errors import (
    AccessDeniedError,
    NetworkError,
    NotFoundError,
    ProtocolError,
)
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.exec.taint import labels_around
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels import lifecycle, log
from agent_adapter.network.channels.lifecycle import Opening
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.hub import audit
from agent_adapter.network.hub.admission import Admission, Registration
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.continuing import Continuing
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.hub.turns import Turns
from agent_adapter.network.rules import life_span, parse_duration
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store import taint
from agent_adapter.store.base import Transaction
from agent_adapter.store.keys import conversation_key

_log = logging.getLogger("agent_adapter.network")


class _MoreOpen(NetworkError):
    """The creator has opened another channel since its channels were counted."""

    def __init__(self, open_now: int) -> None:
        super().__init__(f"{open_now} channels are open by now")
        self.open_now = open_now


class Channels(Continuing):
    """Opens, reads, changes, closes and forks channels."""

    def __init__(
        self,
        service: ChannelService,
        context: HubContext,
        identities: Identities,
        admission: Admission,
        turns: Turns,
        *,
        ack_timeout: float,
    ) -> None:
        super().__init__(service, context)
        self._identities = identities
        self._admission = admission
        self._turns = turns
        self._ack_timeout = ack_timeout
        self.when_rejected: Callable[[Envelope, NetworkError], Awaitable[None]] | None = None
        admission.on_pressure = self._note_pressure

    # --- changes ------------------------------------------------------------------------------

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
        """Open a channel; returns when enough invitees have agreed and it is active.

        `required_acks` is how many must agree; `None` is all. `ttl` is its longest lifetime, 0 is
        for ever; without it the creator's rule says (see `life_span`).
        `most_open` is how many open channels the creator may have besides what its rule says.

        Raises:
            ProtocolError: the channel is invalid, an invitee declined, or did not answer in time.
            AccessDeniedError: a rule does not permit it.
            NotFoundError: a participant is not registered.
        """
        find = self._identities.get
        creator = find(creator_id)
        adapter = self._context.adapters.get(manifest_type, manifest_version, NotFoundError)
        ids = list(participants)
        if creator_id not in ids:
            ids.insert(0, creator_id)
        invited = [find(item) for item in ids if item != creator_id]
        _refuse_twice(ids)
        limits = creator.rule.limits
        lives = parse_duration(ttl if ttl is not None else life_span(limits, manifest_type))
        opening = Opening(
            channel_id=new_secret_id("chn"),
            manifest=adapter.manifest,
            creator_id=creator_id,
            names={item: find(item).name for item in ids},
            required_acks=required_acks,
            ttl=lives or None,
            knobs=dict(knobs or {}),
            labels=dict(labels or {}) | ({"intent": intent} if intent else {}),
            ack_timeout=self._ack_timeout,
        )
        snapshot = await self._admitted_opening(opening, creator, invited, most_open)
        opened = await self._opened(snapshot)
        if carried := await labels_around(self._service.store):
            scope = conversation_key("", opened.channel_id)
            for label in carried:
                await self._service.store.write(partial(taint.mark, scopes=[scope], label=label))
        return opened

    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None = None,
        adopted: Collection[str] = (),
        answers: str | None = None,
        label: str | None = None,
    ) -> str:
        """Accept an envelope and everything that follows from it; its id.

        `turn` names the attempt whose packet it is; `adopted` the calls of earlier attempts whose
        staged changes are applied. A repeated `idempotency_key` gives the id of the first
        acceptance. `answers` is the id of the turn that a person answers. `label` taints the
        channel with the acceptance; a refused envelope taints nothing.

        Raises:
            ProtocolError: the channel does not accept it now; the message says what it expects.
            StaleTurn: another attempt of the turn has begun, or the answered turn has ended.
            AccessDeniedError: a rule does not permit it.
            NotFoundError: the sender or the channel is unknown.
        """
        try:
            return await self._post(
                envelope, turn=turn, adopted=adopted, answers=answers, label=label
            )
        except NetworkError as exc:
            if self.when_rejected is not None:
                await self.when_rejected(envelope, exc)
            raise

    async def _post(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None,
        adopted: Collection[str],
        answers: str | None,
        label: str | None,
    ) -> str:
        sender = self._sender(envelope.sender_id)
        if sender.agent_id != envelope.sender_id:
            raise ProtocolError(f"sender_id is {sender.name}'s id, {sender.agent_id}, not the name")
        if envelope.event_type in log.INVITE_ANSWERS:
            await self._admission.check_answer(envelope, sender)
        else:
            envelope = await self._admitted(envelope, sender, in_turn=turn is not None)
        before = self._checks(envelope, turn, adopted)
        # What a call sends elsewhere carries what its conversation has read.
        carried = await labels_around(self._service.store) if turn is None else ()
        labels = carried if label is None else (*carried, label)
        change: Change = await self._service.change(
            envelope.channel_id,
            lambda tx, cached: log.accept(
                tx,
                self._context,
                envelope,
                cached=cached,
                turn=turn,
                adopted=adopted,
                answers=answers,
                labels=labels,
            ),
            before=before,
        )
        if turn is not None:
            self._turns.dispatcher.told(turn)
        return change.accepted.envelope_id if change.accepted is not None else ""

    async def close_channel(
        self, channel_id: str, reason: str = "", *, sender_id: str | None = None
    ) -> ChannelMetadata:
        """Close a channel; a channel that has ended is left unchanged.

        The log has `sender_id`, a participant, as the one who closed it; without it the hub did.
        """
        why = reason or "explicit_close"
        return await self._changed(
            channel_id,
            lambda tx, cached: lifecycle.close(
                tx, self._context, channel_id, why, cached, by=sender_id
            ),
        )

    def _note_pressure(self, recipient: Registration, waiting: int) -> None:
        """Record that an inbox is filling up."""
        most = recipient.rule.limits.inbox.max_pending
        _log.warning("%d messages wait for %s, who takes %d", waiting, recipient.name, most)
        facts = {"agent_id": recipient.agent_id, "pending": waiting, "cap": most}
        write = partial(audit.write, kind=audit.INBOX_PRESSURE, facts=facts)
        self._service.spawn(lambda: self._service.write(write))

    def _checks(
        self, envelope: Envelope, turn: TurnRef | None, adopted: Collection[str]
    ) -> Callable[[], Awaitable[None]] | None:
        """Awaits the async checks of the channel's type, if any type has some."""
        if not self._context.adapters.has_async_checks:
            return None
        return partial(self._turns.await_checks, envelope.channel_id, envelope, turn, adopted)

    def _sender(self, sender_id: str) -> Registration:
        try:
            return self._identities.get(sender_id)
        except NotFoundError as exc:
            raise NotFoundError(f"sender not registered: {exc}") from None

    async def _admitted_opening(
        self,
        opening: Opening,
        creator: Registration,
        invited: Sequence[Registration],
        most_open: int | None,
    ) -> ChannelSnapshot:
        """The new channel, once its opening is admitted with the channels that are open then."""
        counts = most_open is not None or self._admission.counts_channels(creator)
        open_now = await self._service.read(lambda tx: _open_of(tx, creator.agent_id))
        again = False
        while True:
            if most_open is not None and open_now >= most_open:
                raise AccessDeniedError(
                    f"{creator.name} has {open_now} channels open and may have {most_open}; "
                    "close one first"
                )
            await self._admission.check_open(
                opening.manifest, creator, invited, open_now, again=again
            )
            try:
                return await self._written(opening, open_now if counts else None)
            except _MoreOpen as exc:
                # Another was opened meanwhile: the decision is made again.
                open_now, again = exc.open_now, True

    async def _written(self, opening: Opening, open_now: int | None) -> ChannelSnapshot:
        """The new channel, with its invitations sent.

        Raises `_MoreOpen` if its creator has more than `open_now` channels open by now.
        """
        if self._context.adapters.has_async_checks:
            await lifecycle.await_checks(self._context, opening)

        def op(tx: Transaction, cached: ChannelSnapshot | None) -> Change:
            if open_now is not None and (found := _open_of(tx, opening.creator_id)) > open_now:
                raise _MoreOpen(found)
            return lifecycle.open_channel(tx, self._context, opening)

        change: Change = await self._service.change(opening.channel_id, op)
        return change.snapshot

    async def _opened(self, snapshot: ChannelSnapshot) -> ChannelMetadata:
        """The new channel once it is active."""
        channel_id = snapshot.metadata.channel_id
        if snapshot.metadata.state is ChannelState.PENDING:
            snapshot = await self._agreed(channel_id)
        if snapshot.metadata.state is not ChannelState.ACTIVE:
            raise ProtocolError(
                f"channel {channel_id} was not opened: {snapshot.metadata.close_reason}"
            )
        return snapshot.metadata

    async def _agreed(self, channel_id: str) -> ChannelSnapshot:
        """The channel once its invitations are answered; closed if they are not in time."""
        future = self._service.watch(channel_id)
        current = self._service.snapshots.get(channel_id)
        if current is None or current.metadata.state is not ChannelState.PENDING:
            future.cancel()
            return await self._service.snapshot(channel_id)
        try:
            async with asyncio.timeout(self._ack_timeout):
                return await self._service.settled(channel_id, future)
        except TimeoutError:
            silent = await self.close_channel(channel_id, "invite_timeout")
            names = silent.names()
            waiting = ", ".join(names[item] for item in silent.pending_acks)
            raise ProtocolError(
                f"channel {channel_id} was not opened (ack timeout): no answer from "
                f"{waiting} within "
                f"{self._ack_timeout:g} s; check that they are connected"
            ) from None

    async def _admitted(
        self, envelope: Envelope, sender: Registration, *, in_turn: bool
    ) -> Envelope:
        service = self._service
        snapshot = service.snapshots.get(envelope.channel_id)
        if snapshot is None:
            snapshot = await service.snapshot(envelope.channel_id)
        members = snapshot.metadata.participants
        ids = [item.agent_id for item in members if item.agent_id != sender.agent_id]
        others = self._identities.registered(ids)
        audience = envelope.audience
        unknown = self._identities.unknown(audience) if audience else ()
        return await self._admission.check_post(
            envelope, sender, others, service.waiting, unknown=unknown, in_turn=in_turn
        )


def _open_of(tx: Transaction, creator_id: str) -> int:
    states = [ChannelState.ACTIVE.value, ChannelState.PENDING.value]
    return tx.count("channels", {"creator_id": creator_id, "state in": states})


def _refuse_twice(ids: Sequence[str]) -> None:
    twice = sorted({item for item in ids if ids.count(item) > 1})
    if twice:
        raise ProtocolError(
            f"{', '.join(twice)} is listed twice; list each participant once, and not the opener"
        )
