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
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels import lifecycle, log
from agent_adapter.network.channels.lifecycle import Opening
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot, load_snapshot
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.hub.admission import Admission, Registration
from agent_adapter.network.hub.at_once import snapshot_now
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.continuing import Continuing
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.hub.turns import Turns
from agent_adapter.network.rules import parse_duration
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store import taint
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import conversation_key

_PAGE = 500
_log = logging.getLogger("agent_adapter.network")


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

        `required_acks` is how many must agree; `None` is all. `ttl` is its longest lifetime.
        `most_open` is how many open channels the creator may have besides what its rule says.

        Raises:
            ProtocolError: the channel is invalid, an invitee declined, or did not answer in time.
            AccessDeniedError: a rule does not permit it.
            NotFoundError: a participant is not registered.
        """
        find = self._identities.get
        creator = find(creator_id)
        adapter = self._context.adapters.get(manifest_type, manifest_version)
        ids = list(participants)
        if creator_id not in ids:
            ids.insert(0, creator_id)
        invited = [find(item) for item in ids if item != creator_id]
        _refuse_twice(ids)
        open_now = await self._service.read(lambda tx: _open_of(tx, creator_id))
        if most_open is not None and open_now >= most_open:
            raise AccessDeniedError(
                f"{creator.name} has {open_now} channels open and may have {most_open}; "
                "close one first"
            )
        self._admission.check_open(adapter.manifest, creator, invited, open_now)
        lives = parse_duration(ttl if ttl is not None else creator.rule.limits.channel_ttl_default)
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
        opened = await self._opened(opening)
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
        if envelope.event_type not in log.INVITE_ANSWERS:
            envelope = await self._admitted(envelope, sender, in_turn=turn is not None)
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

    # --- reads --------------------------------------------------------------------------------

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """Everything about a channel except its messages; `NotFoundError` for an unknown id."""
        return (await self._service.snapshot(channel_id)).metadata

    async def list_channels(
        self,
        *,
        agent_id: str | None = None,
        state: ChannelState | str | None = None,
        limit: int = 50,
    ) -> list[ChannelMetadata]:
        """Channels, newest first: of a participant, in a state."""
        wanted = ChannelState(state).value if state is not None else None
        adapters = self._context.adapters

        def op(tx: Transaction) -> list[ChannelMetadata]:
            rows = _channel_rows(tx, agent_id, wanted, limit)
            return [found for row in rows if (found := _metadata_of(tx, row, adapters))]

        return await self._service.read(op)

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log from entry `since`, counted from 0, up to and without `until`.

        Includes envelopes with a restricted audience: for the hub's own process only.
        """
        found: list[Envelope] = []
        at = since
        while until is None or at < until:
            limit = _PAGE if until is None else min(_PAGE, until - at)
            page = await self._service.read(_page(channel_id, at, limit))
            found += [envelope for _, envelope in page]
            at += len(page)
            if len(page) < limit:
                break
        return found

    async def window(
        self, channel_id: str, participant_id: str, recent_n: int
    ) -> Sequence[Envelope]:
        """The newest texts and packets that the participant may see, oldest first."""
        return await self._service.read(
            lambda tx: log.window(tx, channel_id, participant_id, recent_n)
        )

    def adapter_state(self, channel_id: str) -> Any:
        """The folded state as a copy, read now, which may block; `None` for no such channel."""
        snapshot = snapshot_now(self._service, channel_id)
        return None if snapshot is None else _copied_state(snapshot)

    def adapter_for(self, channel_id: str) -> ChannelAdapter:
        """The adapter of a channel; `NotFoundError` for an unknown one."""
        snapshot = snapshot_now(self._service, channel_id)
        if snapshot is None:
            raise NotFoundError(f"channel not found: there is no channel {channel_id!r}")
        return snapshot.adapter

    async def folded_state(self, channel_id: str) -> Any:
        """The folded state of a channel, as a copy; `NotFoundError` for an unknown one."""
        return _copied_state(await self._service.snapshot(channel_id))

    async def find_envelope_by_causation(
        self, channel_id: str, *, sender_id: str, causation_id: str
    ) -> Envelope | None:
        """The newest envelope of `sender_id` that answers the envelope `causation_id`."""
        found = await self.read_wal(channel_id)
        answers = (item for item in reversed(found) if item.causation_id == causation_id)
        return next((item for item in answers if item.sender_id == sender_id), None)

    def _sender(self, sender_id: str) -> Registration:
        try:
            return self._identities.get(sender_id)
        except NotFoundError as exc:
            raise NotFoundError(f"sender not registered: {exc}") from None

    async def _opened(self, opening: Opening) -> ChannelMetadata:
        channel_id = opening.channel_id
        change: Change = await self._service.change(
            channel_id, lambda tx, cached: lifecycle.open_channel(tx, self._context, opening)
        )
        snapshot = change.snapshot
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
        return self._admission.check_post(
            envelope, sender, others, service.waiting, in_turn=in_turn
        )


def _copied_state(snapshot: ChannelSnapshot) -> Any:
    data = snapshot.adapter.state_to_dict(snapshot.state)
    return snapshot.adapter.state_from_dict(snapshot.metadata, data)


def _open_of(tx: Transaction, creator_id: str) -> int:
    states = [ChannelState.ACTIVE.value, ChannelState.PENDING.value]
    return tx.count("channels", {"creator_id": creator_id, "state in": states})


def _refuse_twice(ids: Sequence[str]) -> None:
    twice = sorted({item for item in ids if ids.count(item) > 1})
    if twice:
        raise ProtocolError(
            f"{', '.join(twice)} is listed twice; list each participant once, and not the opener"
        )


def _channel_rows(
    tx: Transaction, agent_id: str | None, state: str | None, limit: int
) -> list[Row]:
    where: Row = {} if state is None else {"state": state}
    if agent_id is None:
        return tx.select("channels", where, order_by="created_at", descending=True, limit=limit)
    member = {"agent_id": agent_id}
    most = limit if state is None else None
    mine = tx.select("channel_members", member, order_by="joined_at", descending=True, limit=most)
    rows = [tx.get("channels", item["channel_id"]) for item in mine]
    return [row for row in rows if row and (state is None or row["state"] == state)][:limit]


def _metadata_of(tx: Transaction, row: Row, adapters: AdapterRegistry) -> ChannelMetadata | None:
    """The metadata of a channel; `None` for one whose row was changed so that it has none."""
    try:
        return load_snapshot(tx, row, adapters).metadata
    except (ValueError, KeyError, TypeError, ProtocolError) as exc:
        _log.error("channel %s cannot be read: %s", row["channel_id"], exc)
        return None


def _page(channel_id: str, since: int, limit: int) -> Callable[[Transaction], Any]:
    return lambda tx: log.read_from(tx, channel_id, since, limit)
