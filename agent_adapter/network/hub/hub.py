"""`Hub`: who takes part, what is accepted, and whose turn it is, over one store.

The hub itself keeps little: who is attached, and channels as it last read them. Everything that is
true is a row; every change is one operation of `network.log`, `lifecycle`, `turns` or `forking`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, ProtocolError
from agent_adapter.core.ports import ApprovalPort, Clock
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.ids import new_id
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels import expectations, lifecycle, log
from agent_adapter.network.channels.lifecycle import Opening
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.hub import directory, leases, tasks
from agent_adapter.network.hub.admission import Admission, Arbiter, Identity
from agent_adapter.network.hub.audit import AuditLog
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.channels import HubChannels
from agent_adapter.network.hub.identities import HubIdentities
from agent_adapter.network.hub.scheduler import HubTime
from agent_adapter.network.hub.stores import hub_store
from agent_adapter.network.hub.sweepers import Sweepers
from agent_adapter.network.hub.tasks import Task
from agent_adapter.network.hub.turns import HubTurns
from agent_adapter.network.rules import parse_duration
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.dispatcher import Dispatcher
from agent_adapter.network.turns.turn_types import Receiver, RunTurn, TurnRef
from agent_adapter.store import waits
from agent_adapter.store.base import Store, Transaction

__all__ = ["Hub"]

_POLL_SECONDS = 0.2
_BEAT_SECONDS = 5.0
_log = logging.getLogger("agent_adapter.network")


class Hub(HubIdentities, HubChannels, HubTurns, HubTime):
    """The one hub of a store: `await Hub.open(store)`, `await hub.close()`, or `async with`.

    Attributes:
        store: where everything is kept.
        executor: runs the tool calls of participants in this process.
        adapters: the types of channel that it knows.
        driver_for: finds what runs an agent's rounds; `None` leaves it to the clients.
    """

    def __init__(
        self,
        store: Store,
        *,
        owns_store: bool,
        clock: Clock | None,
        invite_ack_timeout: float,
        executor: Executor,
        driver_for: Callable[[Any], Any] | None,
        arbiter: Arbiter | None,
    ) -> None:
        self.store = store
        self.executor = executor
        self.driver_for = driver_for
        self.adapters = AdapterRegistry()
        self.admission = Admission(arbiter)
        self._directory = directory.Directory()
        self._owns_store = owns_store
        self._ack_timeout = invite_ack_timeout
        self._holder = new_id("hub")
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._desk = HubContext(self._holder, self.adapters, self._directory.is_person)
        self.dispatch = Dispatcher(self, self._context)
        self._board = ChannelService(
            store, self._desk, clock=clock, context=self._context, offer=self.dispatch.offer
        )
        self._sweepers = Sweepers(self._context)
        self._audit_log = AuditLog(self._board.write, store)
        self._beaten_at = 0.0
        self._closed = False

    @classmethod
    async def open(
        cls,
        store: Any = None,
        *,
        clock: Clock | None = None,
        ttl_sweep_interval: float = 30.0,
        expectation_sweep_interval: float = 10.0,
        invite_ack_timeout: float = 30.0,
        executor: Executor | None = None,
        approval: ApprovalPort | None = None,
        driver_for: Callable[[Any], Any] | None = None,
        arbiter: Arbiter | None = None,
    ) -> Hub:
        """The hub of `store`, with everything that was there before.

        `store` is one of ours, a path or URL, `None` for the default file, or AG2's
        `MemoryKnowledgeStore`. `clock` gives seconds since the epoch in place of the store's.
        The sweepers look every so many seconds for channels that are out of time and deadlines
        that have passed; 0 leaves one off. `executor` runs tool calls; without it one over the
        hub's store, which asks `approval`. `arbiter` decides who is let through.

        Raises:
            NetworkError: another hub serves the store; the message says which.
            TypeError: `store` is none.
        """
        found, owned = await asyncio.to_thread(hub_store, store, clock)
        hub = cls(
            found,
            owns_store=owned,
            clock=clock,
            invite_ack_timeout=invite_ack_timeout,
            executor=executor or Executor(approval=approval, store=found),
            driver_for=driver_for,
            arbiter=arbiter,
        )
        try:
            await hub.hydrate()
        except BaseException:
            if owned:
                await found.aclose()
            raise
        hub._sweepers.start("ttl", ttl_sweep_interval, hub.expire_due)
        hub._sweepers.start("expectations", expectation_sweep_interval, hub.run_expectations)
        hub._sweepers.start("poll", _POLL_SECONDS, hub.poll)
        return hub

    async def hydrate(self) -> None:
        """Take the store over: who is registered, and the turns that a hub before was running.

        What it costs depends on what is open, not on what was ever said.
        """

        def op(tx: Transaction) -> list[tuple[Any, str | None]]:
            down = leases.take(tx, self._holder, self, where=self.store.url)
            if down is not None:
                expectations.shift(tx, down)
                turn_queue.lose_running(tx)
            return directory.load_all(tx)

        self._directory.replace_all(await self._board.write(op))

    async def close(self) -> None:
        """Stop: rounds under way are given back, and the next hub goes on with them."""
        if self._closed:
            return
        self._closed = True
        await self._sweepers.close()
        await self.dispatch.close()
        await self._board.close()
        try:
            await self._board.write(lambda tx: leases.release(tx, self._holder))
        except AgentAdapterError as exc:
            _log.warning("the lease of %s was not given back: %s", self.store.url, exc)
        if self._owns_store:
            await self.store.aclose()

    async def __aenter__(self) -> Hub:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def audit_log(self) -> AuditLog:
        """What happened to participants and channels."""
        return self._audit_log

    @property
    def is_abandoned(self) -> bool:
        """Whether the event loop that the hub lives in is gone."""
        return self._closed or self._loop.is_closed()

    def register_adapter(self, adapter: ChannelAdapter) -> None:
        """Know a further type of channel, or a type anew for channels that are opened later."""
        self.adapters.register(adapter)

    # --- who is attached ----------------------------------------------------------------------

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver what comes for a participant to `receiver`, and give it its turns.

        `ProtocolError` when somebody is attached for it already.
        """
        name = self._directory.get(agent_id).name
        if self._board.receiver(agent_id) is not None:
            raise ProtocolError(f"{name} is connected already; disconnect it first")
        self._board.attach(agent_id, receiver)
        if receiver.run_turn is not None:
            self._board.spawn(self.run_due)

    async def detach(self, agent_id: str) -> None:
        """Deliver nothing more; returns when the rounds under way are given back."""
        self._board.detach(agent_id)
        await self.dispatch.stop_agent(agent_id)

    def is_connected(self, agent_id: str) -> bool:
        """Whether somebody is attached for that participant."""
        return self._board.receiver(agent_id) is not None

    def runner_of(self, agent_id: str) -> RunTurn | None:
        """Who runs the turns of that participant here; `None` where nobody does."""
        receiver = self._board.receiver(agent_id)
        return None if receiver is None else receiver.run_turn

    async def wake_turn(self, turn_id: str) -> None:
        """Make a parked turn due: what it waits for was decided outside this store."""
        await self.store.write(lambda tx: waits.wake_turn(tx, turn_id))
        await self.run_due()

    # --- tasks --------------------------------------------------------------------------------

    async def start_task(
        self, task_id: str, owner_id: str, title: str, channel_id: str | None = None
    ) -> Task:
        """Keep a new task; a known `task_id` gives the existing task."""
        return await self._board.write(
            lambda tx: tasks.start_task(tx, task_id, owner_id, title, channel_id)
        )

    async def update_task(
        self,
        task_id: str,
        owner_id: str,
        *,
        state: str = "running",
        note: str | None = None,
        result: str | None = None,
    ) -> Task:
        """Change a task of its owner; one that has ended stays as it is.

        `NotFoundError` for a task of somebody else, `ProtocolError` for an unknown state.
        """
        return await self._board.write(
            lambda tx: tasks.update_task(
                tx, task_id, owner_id, state=state, note=note, result=result
            )
        )

    async def read_task(self, task_id: str) -> Task:
        """A task; `NotFoundError` for an unknown one."""
        return await self._board.read(lambda tx: tasks.read_task(tx, task_id))

    async def list_tasks(
        self, owner_id: str, *, state: str | None = None, limit: int = 50
    ) -> list[Task]:
        """Tasks of one owner, newest first."""
        return await self._board.read(
            lambda tx: tasks.list_tasks(tx, owner_id, state=state, limit=limit)
        )

    # --- channels -----------------------------------------------------------------------------

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
        """Open a channel; returns when enough of those invited have agreed, and it is active.

        `required_acks` is how many must; `None` is all. `ttl` is how long it lives at most.

        Raises:
            ProtocolError: such a channel cannot be, somebody declined, or nobody answered in time.
            AccessDeniedError: a rule does not permit it.
            NotFoundError: a participant is not registered.
        """
        creator = self._directory.get(creator_id)
        adapter = self.adapters.get(manifest_type, manifest_version)
        ids = list(participants)
        if creator_id not in ids:
            ids.insert(0, creator_id)
        invited = [self._directory.get(item) for item in ids if item != creator_id]
        _refuse_twice(ids)
        open_now = await self._board.read(lambda tx: _open_of(tx, creator_id))
        self.admission.check_open(adapter.manifest, creator, invited, open_now)
        lives = parse_duration(ttl if ttl is not None else creator.rule.limits.channel_ttl_default)
        opening = Opening(
            channel_id=new_id("chn"),
            manifest=adapter.manifest,
            creator_id=creator_id,
            names={item: self._directory.get(item).name for item in ids},
            required_acks=required_acks,
            ttl=lives or None,
            knobs=dict(knobs or {}),
            labels=dict(labels or {}) | ({"intent": intent} if intent else {}),
            ack_timeout=self._ack_timeout,
        )
        return await self._opened(opening)

    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None = None,
        adopted: Collection[str] = (),
        answers: str | None = None,
    ) -> str:
        """Accept an envelope and all that follows from it; its id.

        `turn` names the round whose packet it is; `adopted` the calls of earlier attempts whose
        staged changes count. A repeated `idempotency_key` gives the id of the first acceptance.
        `answers` is the id of the turn that a person answers.

        Raises:
            ProtocolError: the channel does not take it now; the message says what it expects.
            StaleTurn: another attempt of the turn has begun, or the turn answered has passed.
            AccessDeniedError: a rule does not permit it.
            NotFoundError: there is no such sender or channel.
        """
        sender = self._directory.get(envelope.sender_id)
        if sender.agent_id != envelope.sender_id:
            raise ProtocolError(f"sender_id is {sender.name}'s id, {sender.agent_id}, not the name")
        if envelope.event_type not in log.INVITE_ANSWERS:
            envelope = await self._admitted(envelope, sender, in_turn=turn is not None)
        change: Change = await self._board.change(
            envelope.channel_id,
            lambda tx, cached: log.accept(
                tx,
                self._desk,
                envelope,
                cached=cached,
                turn=turn,
                adopted=adopted,
                answers=answers,
            ),
        )
        if turn is not None:
            self.dispatch.told(turn)
        return change.accepted.envelope_id if change.accepted is not None else ""

    async def close_channel(self, channel_id: str, reason: str = "") -> ChannelMetadata:
        """Close a channel; one that has ended stays as it is."""
        why = reason or "explicit_close"
        change: Change = await self._board.change(
            channel_id, lambda tx, cached: lifecycle.close(tx, self._desk, channel_id, why, cached)
        )
        return change.known.metadata

    async def _opened(self, opening: Opening) -> ChannelMetadata:
        channel_id = opening.channel_id
        change: Change = await self._board.change(
            channel_id, lambda tx, cached: lifecycle.open_channel(tx, self._desk, opening)
        )
        known = change.known
        if known.metadata.state is ChannelState.PENDING:
            known = await self._agreed(channel_id)
        if known.metadata.state is not ChannelState.ACTIVE:
            raise ProtocolError(
                f"channel {channel_id} was not opened: {known.metadata.close_reason}"
            )
        return known.metadata

    async def _agreed(self, channel_id: str) -> ChannelSnapshot:
        """The channel once it is answered for; closed when nobody does so in time."""
        future = self._board.watch(channel_id)
        current = self._board.cached(channel_id)
        if current is None or current.metadata.state is not ChannelState.PENDING:
            future.cancel()
            return await self._board.known(channel_id)
        try:
            async with asyncio.timeout(self._ack_timeout):
                return await self._board.settled(channel_id, future)
        except TimeoutError:
            silent = await self.close_channel(channel_id, "invite_timeout")
            names = silent.names()
            waiting = ", ".join(names[item] for item in silent.pending_acks)
            raise ProtocolError(
                f"channel {channel_id} was not opened: no answer from {waiting} within "
                f"{self._ack_timeout:g} s; see that they are connected"
            ) from None

    async def _admitted(self, envelope: Envelope, sender: Identity, *, in_turn: bool) -> Envelope:
        cached = self._board.cached(envelope.channel_id)
        known = cached or await self._board.known(envelope.channel_id)
        find = self._directory.find
        others = [
            identity
            for participant in known.metadata.participants
            if participant.agent_id != sender.agent_id
            and (identity := find(participant.agent_id)) is not None
        ]
        return self.admission.check_post(
            envelope, sender, others, self._board.waiting, in_turn=in_turn
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
