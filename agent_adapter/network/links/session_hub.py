"""`SessionHub`: a hub as one connection may use it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_adapter.core.errors import (
    AccessDeniedError,
    AuthError,
    NotFoundError,
    ProtocolError,
    StaleTurn,
)
from agent_adapter.flow.envelope import Envelope, visible_to
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.hub.admission import allows
from agent_adapter.network.hub.task_records import TaskMetadata, task_of
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.bounds import PAGE
from agent_adapter.network.links.operation import to_wire
from agent_adapter.network.links.operations import OPERATIONS
from agent_adapter.network.links.remote_participant import FrameSink, RemoteParticipant, catch_up
from agent_adapter.network.links.remote_participants import RemoteParticipants
from agent_adapter.network.links.session_events import SessionEvents
from agent_adapter.network.links.wire import failure_from_wire, hidden
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import TurnRef

_PAGE_BYTES = 4 * 1024 * 1024
_PARTICIPANTS = 100
MOST_CHANNELS = 1000
"""The most open channels of one participant of a connection; its rule may allow fewer."""

_LONGEST_ID = 1000
_IDS = ("channel_id", "event_type", "task_id", "causation_id", "trace_id", "idempotency_key")


class SessionHub:
    """Performs the operations that a connection requests.

    A connection acts only for participants that it has registered, and sees only the channels that
    they are in. An operation without a method here is the hub's own.

    Attributes:
        participants: the participants that the connection has registered, by id.
    """

    def __init__(
        self, remote: RemoteParticipants, sink: FrameSink, instance: str, names: Sequence[str]
    ) -> None:
        self.participants: dict[str, RemoteParticipant] = {}
        self._hub = remote.hub
        self._remote = remote
        self._sink = sink
        self._instance = instance
        self._names = list(names)
        self._events = SessionEvents(self._hub, self.participants)

    async def perform(self, op: str, params: Mapping[str, Any]) -> Any:
        """The result of an operation as JSON.

        `ProtocolError` for an unknown operation or malformed parameters; else what the access
        checks and the operation raise.
        """
        operation = OPERATIONS.get(op)
        if operation is None:
            raise ProtocolError(f"there is no operation {op!r}; there are {', '.join(OPERATIONS)}")
        arguments = operation.read(params)
        for access in operation.access:
            await access.check(self, arguments)
        target = self if hasattr(type(self), op) else self._hub
        return to_wire(await operation.call(target, arguments))

    def close(self) -> None:
        """The connection has ended; its participants may return within the grace period."""
        for participant in self.participants.values():
            if participant.sink is self._sink:
                self._remote.farewell(participant)

    # --- access checks ------------------------------------------------------------------------

    def check_own(self, agent_id: str) -> None:
        """`AccessDeniedError` for a participant that the connection has not registered."""
        if agent_id not in self.participants:
            own = [f"{item.passport.name} ({id})" for id, item in self.participants.items()]
            raise AccessDeniedError(
                f"this connection acts for {', '.join(own) or 'no one yet'}, not for "
                f"{agent_id!r}; register it first"
            )

    async def check_member(self, channel_id: str) -> None:
        """`NotFoundError` for a channel that none of its participants is in."""
        await self._check_members(channel_id, self.participants.keys())

    async def _check_members(self, channel_id: str, some_of: Collection[str]) -> None:
        """`NotFoundError`, the same for a foreign and an invented channel, unless one is in it."""
        metadata = await self._hub.get_channel(channel_id)
        if not any(item in some_of for item in metadata.participant_ids()):
            raise NotFoundError(f"channel not found: there is no channel {channel_id!r} here")

    async def check_in(self, agent_id: str, channel_id: str) -> None:
        """`NotFoundError` for a channel that this participant is not in."""
        await self._check_members(channel_id, {agent_id})

    async def check_opener(self, channel_id: str) -> None:
        """`NotFoundError` for a foreign channel, `AccessDeniedError` for one opened by others."""
        await self.check_member(channel_id)
        metadata = await self._hub.get_channel(channel_id)
        if metadata.creator_id not in self.participants:
            raise AccessDeniedError(f"only the opener of channel {channel_id} may reopen it")

    async def check_own_parked(self, turn_id: str) -> None:
        """`NotFoundError` for a turn of another connection."""
        turn = await self._hub.store.read(lambda tx: tx.get("turns", turn_id))
        if turn is None or turn["agent_id"] not in self.participants:
            raise NotFoundError(f"there is no turn {turn_id} here")

    async def check_own_task(self, task: Any) -> None:
        """`NotFoundError` for a task of another connection; `task` is its id, or its record.

        So it is for a record that names a channel which its owner is not in.
        """
        task_id = task if isinstance(task, str) else task.task_id
        row = await self._hub.store.read(lambda tx: tx.get("tasks", task_id))
        owners = {getattr(task, "owner_id", None), None if row is None else row["owner_id"]}
        owners.discard(None)
        if not owners or not owners <= self.participants.keys():
            raise NotFoundError(f"task not found: there is no task {task_id!r} here")
        if (channel_id := getattr(task, "channel_id", None)) is not None:
            await self.check_in(task.owner_id, channel_id)

    async def check_seen_task(self, task_id: str) -> None:
        """`NotFoundError` for a task that is neither its own nor of a channel it is in."""
        row = await self._hub.store.read(lambda tx: tx.get("tasks", task_id))
        if row is None or not await self._events.may_see_task(task_of(row)):
            raise NotFoundError(f"task not found: there is no task {task_id!r} here")

    def own_turn(self, turn: TurnRef) -> TurnRef:
        """The hub's own reference to an attempt; `StaleTurn` if it is not running here."""
        for participant in self.participants.values():
            if turn.turn_id in participant.attempts:
                return participant.attempt(turn).ref
        raise StaleTurn(f"turn {turn.turn_id} is not under way here")

    def own_envelope(self, envelope: Envelope) -> Envelope:
        """The envelope with its sender filled in; `AccessDeniedError` for another's."""
        if not envelope.sender_id and len(self.participants) == 1:
            envelope = replace(envelope, sender_id=next(iter(self.participants)))
        self.check_own(envelope.sender_id)
        return envelope

    # --- operations whose answer depends on the connection ------------------------------------

    async def register(
        self,
        passport: Passport,
        resume: Resume,
        rule: Rule | None,
        cursors: Mapping[str, str] | None,
        seen_at: str | None,
        running: Sequence[TurnRef],
    ) -> Passport:
        """Register a participant, or resume it after a reconnection."""
        if not allows(self._names, passport.name):
            raise AuthError(
                f"this connection may not go by the name {passport.name!r}, only by "
                f"{', '.join(self._names) or 'none'}"
            )
        if passport.kind == "remote_agent":
            raise AccessDeniedError(
                f"{passport.name} is a remote agent, which the hub's own program registers"
            )
        if len(self.participants) >= _PARTICIPANTS:
            raise AccessDeniedError(f"a connection has at most {_PARTICIPANTS} participants")
        participant = await self._remote.admit(passport, resume, rule, self._instance)
        # Deliveries wait until the log is replayed, so that envelopes arrive in its order.
        async with participant.gate:
            participant.sink = self._sink
            self.participants[participant.agent_id] = participant
            if cursors is not None:
                await catch_up(participant, cursors, seen_at or "")
        if self._hub.is_connected(participant.agent_id):
            await participant.resend(running)
        else:
            self._hub.attach(participant.agent_id, participant)
        return participant.passport

    async def leave(self, agent_id: str) -> None:
        """Stop delivering to a participant."""
        await self._remote.dismiss(self.participants.pop(agent_id))

    async def unregister(self, agent_id: str) -> None:
        """Remove a participant."""
        await self.leave(agent_id)
        await self._hub.unregister(agent_id)

    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None,
        adopted: Sequence[str],
        answers: str | None,
    ) -> str:
        """Accept an envelope; the hub sets its id and time, and a depth that cannot be lowered."""
        sender = self.participants[envelope.sender_id]
        ref, depth = None, max(envelope.depth, sender.depth_floor())
        if turn is not None:
            ref, depth = sender.attempt(turn).ref, envelope.depth
        _check_ids(envelope)
        envelope = replace(envelope, envelope_id="", created_at="", depth=depth)
        await self._check_members(envelope.channel_id, {sender.agent_id})
        return await self._hub.post_envelope(
            envelope, turn=ref, adopted=adopted, answers=answers, label=self._label(sender)
        )

    async def create_channel(self, *, creator_id: str, **details: Any) -> ChannelMetadata:
        """Open a channel, unless the creator has too many that are open."""
        return await self._hub.create_channel(
            creator_id=creator_id, most_open=MOST_CHANNELS, **details
        )

    async def close_channel(
        self, channel_id: str, reason: str, *, sender_id: str | None
    ) -> ChannelMetadata:
        """Close a channel in the name of a participant of the connection that is in it."""
        if sender_id is None:
            ids = (await self._hub.get_channel(channel_id)).participant_ids()
            sender_id = next(id for id in ids if id in self.participants)
        return await self._hub.close_channel(channel_id, reason, sender_id=sender_id)

    async def reopen(self, channel_id: str, *, sender_id: str | None) -> ChannelMetadata:
        """Let a channel go on in the name of its opener, a participant of the connection."""
        opener = (await self._hub.get_channel(channel_id)).creator_id
        return await self._hub.reopen(channel_id, sender_id=sender_id or opener)

    async def list_channels(
        self, *, agent_id: str | None, state: str | None, limit: int
    ) -> list[ChannelMetadata]:
        """Channels of one participant, or of all that the connection has."""
        found: dict[str, ChannelMetadata] = {}
        for own in self.participants if agent_id is None else [agent_id]:
            mine = await self._hub.list_channels(agent_id=own, state=state, limit=limit)
            found |= {item.channel_id: item for item in mine}
        newest = sorted(found.values(), key=lambda item: item.created_at, reverse=True)
        return newest[:limit]

    async def read_wal(self, channel_id: str, since: int, until: int | None) -> dict[str, Any]:
        """A page of a log; entries that no participant of the connection may see are blank."""
        most = since + PAGE if until is None else min(until, since + PAGE)
        envelopes: list[dict[str, Any]] = []
        size = 0
        page = await self._hub.read_wal(channel_id, since, most)
        for envelope in page:
            seen = any(visible_to(envelope, agent_id) for agent_id in self.participants)
            data = (envelope if seen else hidden(channel_id)).to_dict()
            size += len(json.dumps(data))
            if envelopes and size > _PAGE_BYTES:
                return {"envelopes": envelopes, "more": True}
            envelopes.append(data)
        more = len(page) == PAGE and (until is None or until > most)
        return {"envelopes": envelopes, "more": more}

    async def adapter_state(self, channel_id: str) -> dict[str, Any]:
        """A channel's metadata and folded state."""
        metadata = await self._hub.get_channel(channel_id)
        adapter = self._hub.adapters.get(metadata.manifest.type, metadata.manifest.version)
        state = await self._hub.folded_state(channel_id)
        return {"metadata": metadata.to_dict(), "state": adapter.state_to_dict(state)}

    async def list_tasks(
        self,
        owner_id: str | None,
        *,
        agent_id: str | None,
        channel_id: str | None,
        state: str | None,
        limit: int,
    ) -> list[TaskMetadata]:
        """Tasks that the connection may see, newest first."""
        owner = owner_id if agent_id is None else agent_id
        owners: list[str | None] = [owner]
        if owner is None and channel_id is None:
            owners = list(self.participants)
        found: dict[str, TaskMetadata] = {}
        for each in owners:
            page = await self._hub.list_tasks(each, channel_id=channel_id, state=state, limit=limit)
            found |= {item.task_id: item for item in page if await self._events.may_see_task(item)}
        return sorted(found.values(), key=lambda item: item.created_at, reverse=True)[:limit]

    async def record_observation(
        self,
        *,
        owner_id: str,
        capability: str,
        outcome: str,
        latency_ms: int | None,
        task_id: str | None,
    ) -> None:
        """Count the end of a task that the connection's participant has begun: no invented uses."""
        if task_id is None:
            raise AccessDeniedError("an observation over a connection names its task")
        await self.check_own_task(task_id)
        task = await self._hub.get_task(task_id)
        if task.spec.capability != capability or task.state.value != outcome:
            raise AccessDeniedError(
                f"task {task_id} is {task.state.value}, its capability {task.spec.capability!r}"
            )
        await self._hub.record_observation(
            owner_id=owner_id,
            capability=capability,
            outcome=outcome,
            latency_ms=latency_ms,
            task_id=task_id,
        )

    async def read_events(
        self, after: str | None, kinds: Sequence[str] | None, wait: float
    ) -> dict[str, Any]:
        """Events that the connection may see."""
        return await self._events.read(after, kinds, wait)

    async def fail_turn(
        self, turn: TurnRef, error: str, message: str, error_class: str | None, outage: bool
    ) -> None:
        """Count a failed attempt."""
        failure = failure_from_wire(error, message, error_class, outage=outage)
        await self._hub.fail_turn(turn, failure)

    async def set_by_hand(self, agent_id: str, by_hand: bool) -> None:
        """Start no turns of the participant, or start them again."""
        self.participants[agent_id].by_hand = by_hand

    async def take_turn(self, turn_id: str) -> bool:
        """Start a due turn of a participant of the connection."""
        turn = await self._hub.store.read(lambda tx: tx.get("turns", turn_id))
        participant = self.participants.get("" if turn is None else turn["agent_id"])
        return False if participant is None else await participant.take(turn_id)

    async def turn_over(self, turn: TurnRef, error: str, message: str) -> None:
        """The attempt has ended in the other process; an attempt that is not running is ignored."""
        for participant in self.participants.values():
            found = participant.attempts.get(turn.turn_id)
            if found is not None and found.ref.attempt == turn.attempt:
                found.end(error, message)

    def _label(self, sender: RemoteParticipant) -> str | None:
        """What a message of an untrusted participant taints its channel with."""
        name = sender.passport.name
        return None if allows(self._remote.trusted, name) else f"remote participant {name}"


def _check_ids(envelope: Envelope) -> None:
    for name in _IDS:
        _check_id(name, getattr(envelope, name))
    for item in envelope.audience or ():
        _check_id("audience", item)


def _check_id(name: str, value: str | None) -> None:
    if value is not None and len(value) > _LONGEST_ID:
        raise ProtocolError(
            f"envelope.{name} has {len(value)} characters, the limit is {_LONGEST_ID}"
        )
