"""`ChannelService`: runs operations on channels and notifies attached participants of changes."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from agent_adapter.core.errors import AgentAdapterError, NetworkError, NotFoundError, StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.flow.envelope import TURN_EVENTS, Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.channels import integrity, log
from agent_adapter.network.channels.metadata import TERMINAL_STATES
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row, load_snapshot
from agent_adapter.network.channels.transaction import Change
from agent_adapter.network.events.feed import EventFeed
from agent_adapter.network.hub import audit, leases
from agent_adapter.network.hub.outbox import Backlog, Outbox
from agent_adapter.network.turns.turn_types import Receiver, RunTurn
from agent_adapter.store.base import Operation, Row, Store, Transaction
from agent_adapter.store.positions import MEMO
from agent_adapter.store.witness import keys_of_channel

T = TypeVar("T")

ChannelOperation = Callable[[Transaction, ChannelSnapshot | None], Any]
"""An operation on one channel; its second argument is the cached snapshot, if any."""

_KEPT_CHANNELS = 4096
_MOST_CHECKED = 65_536
_log = logging.getLogger("agent_adapter.network")


class ChannelService:
    """Runs a hub's operations on its store, caches channel snapshots, delivers what changed.

    Changes of one channel run one after another; those of different channels share the store's
    transactions. Changes are delivered after they are durable, in the order of the log.

    Attributes:
        snapshots: the cached channels by id; one is valid while its row has its revision.
        whole: the channels that were compared with their chain, and found as they were written.
        feed: the stream of events that these changes make.
        active_channels: how many channels have not ended, as far as this process knows.
        is_person: whether a person, who may be away and reads the log later, has that id.
        late_refusals: operations that refused after their first insert; each one is a bug.
    """

    def __init__(
        self,
        store: Store,
        *,
        holder: str,
        adapters: AdapterRegistry,
        clock: Clock | None,
        context: contextvars.Context,
    ) -> None:
        self.store = store
        self.feed = EventFeed(self.read, store, own_clock=clock is not None)
        self._holder = holder
        self._adapters = adapters
        self.late_refusals = 0
        self.active_channels = 0
        self.is_person: Callable[[str], bool] = lambda agent_id: False
        self._clock = clock
        self._context = context
        self._offer: Callable[[Row], None] | None = None
        self.when_undelivered: Callable[[Envelope, str, Exception], Any] | None = None
        self.snapshots: OrderedDict[str, ChannelSnapshot] = OrderedDict()
        self.whole: set[str] = set()
        self._altered: dict[str, integrity.ChannelAltered] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        # The last delivered entry of each log that is in use: deliveries follow it, without gaps.
        self._delivered: dict[str, int] = {}
        self._outboxes: dict[str, Outbox] = {}
        self._missed: dict[str, int] = {}
        self.waiting: Mapping[str, int] = Backlog(self._outboxes, self._missed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._watchers: dict[str, list[asyncio.Future[ChannelSnapshot]]] = {}

    def when_due(self, offer: Callable[[Row], None]) -> None:
        """Call `offer` with each turn that a change makes due."""
        self._offer = offer

    async def write(self, op: Operation[T], channel_id: str | None = None) -> T:
        """Run `op` whole or not at all; raises the `NetworkError` with which it refuses.

        With `channel_id` it depends on that channel alone: it may run beside others.
        """
        value = await self._write(op, channel_id)
        if self.feed.settle is not None:
            await self.feed.settle()
        return value

    async def _write(self, op: Operation[T], channel_id: str | None = None) -> T:
        late = False
        position: Row | None = None

        def run(tx: Transaction) -> T:
            nonlocal late, position
            self._set_clock(tx)
            try:
                value = op(tx)
            except NetworkError:
                late = tx.wrote > 0
                raise
            position = tx.memo.get(MEMO)
            return value

        if channel_id is not None:
            run.keys = partial(keys_of_channel, channel_id)  # type: ignore[attr-defined]  # of an operation
        try:
            value = await self.store.write(run)
        except NetworkError as exc:
            if late:
                # Nothing of it stays, but the store had to roll back the whole batch and run it
                # again, operation by operation: conditions belong before the first insert.
                self.late_refusals += 1
                _log.warning("an operation was refused after it had written: %s", exc)
            raise
        feed = self.feed
        if position is not None and position["position"] > feed.newest:
            feed.newest = position["position"]
            if feed.has_readers:
                feed.ring()
        return value

    async def read(self, op: Operation[T]) -> T:
        """Run `op`, which only reads."""

        def run(tx: Transaction) -> T:
            self._set_clock(tx)
            return op(tx)

        return await self.store.read(run)

    async def write_leased(self, op: Operation[T], channel_id: str | None = None) -> T:
        """Run `op` if this hub still holds the store's lease; `HubReplaced` otherwise."""

        def run(tx: Transaction) -> T:
            # In the transaction itself: a hub that was replaced must not write one row more.
            leases.check(tx, self._holder)
            return op(tx)

        return await self._write(run, channel_id)

    def is_altered(self, channel_id: str) -> bool:
        """Whether the channel was found changed by something else than this library."""
        return channel_id in self._altered

    async def check(self, channel_id: str) -> None:
        """Raise `ChannelAltered` unless the channel is in the store as it was written.

        Looks once per channel; the cost is the length of its log.
        """
        if channel_id in self.whole:
            return
        if channel_id not in self._altered:
            found: list[str] = []
            if self.store.durable:  # else nobody but this process can change it
                found = await self.read(lambda tx: integrity.problems(tx, channel_id))
            if not found:
                if len(self.whole) >= _MOST_CHECKED:
                    self.whole.clear()
                self.whole.add(channel_id)
                return
        if channel_id not in self._altered:
            self._altered[channel_id] = error = integrity.altered(channel_id, found)
            _log.error("%s", error)
            facts = {"channel_id": channel_id, "problems": found}
            await self.write(lambda tx: audit.write(tx, audit.ALTERED, facts))
        raise self._altered[channel_id]

    async def change(
        self,
        channel_id: str,
        op: ChannelOperation,
        *,
        delivers: bool = True,
        alone: bool = False,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Run `op` on a channel under the lease, after all earlier changes; deliver its result.

        A copy of a log `delivers` nothing: its entries were delivered in the first channel. It
        reads that one too, and so runs `alone`, beside no other operation.
        `before` is awaited first, while no other change of the channel runs.
        """
        if channel_id not in self.whole:
            await self.check(channel_id)
        lock = self._locks.get(channel_id)
        if lock is None:
            lock = self._locks[channel_id] = asyncio.Lock()
        async with lock:
            if before is not None:
                await before()
            cached = self.snapshots.get(channel_id)

            def run(tx: Transaction) -> Any:
                if delivers and channel_id not in self._delivered:
                    # Known before `op` appends: its caller may be gone when it has been committed.
                    row = tx.get("channels", channel_id)
                    self._delivered[channel_id] = 0 if row is None else row["seq"]
                return op(tx, cached)

            try:
                result = await self.write_leased(run, None if alone else channel_id)
                if type(result) is Change:
                    self.tell(result, await self._missed_before(result))
            except (asyncio.CancelledError, StoreError):
                # The operation may have been committed, or may be later.
                self._look_again(channel_id)
                raise
            except NotFoundError:
                self._locks.pop(channel_id, None)
                self._delivered.pop(channel_id, None)
                raise
        if self.feed.settle is not None:
            # Outside of the lock: a listener may use the channel itself.
            await self.feed.settle()
        return result

    async def snapshot(self, channel_id: str) -> ChannelSnapshot:
        """The channel as it is now; `NotFoundError` for an unknown id."""
        cached = self.snapshots.get(channel_id)
        adapters = self._adapters

        def op(tx: Transaction) -> ChannelSnapshot:
            return load_snapshot(tx, channel_row(tx, channel_id), adapters, cached)

        try:
            return await self.read(op)
        except (ValueError, KeyError, TypeError):
            await self.check(channel_id)  # says what was changed, so that it cannot be read
            raise

    def tell(self, change: Change, missed: Sequence[Envelope] = ()) -> None:
        """Cache the new snapshot; deliver the envelopes and due turns of a durable change.

        `missed` are the envelopes between the last delivered one and those of the change.
        """
        channel_id, snapshot = change.channel_id, change.snapshot
        seq = snapshot.seq - len(change.envelopes) - len(missed)
        for envelope in (*missed, *change.envelopes):
            seq += 1
            self._deliver(envelope, snapshot, seq)
        self.active_channels += change.opened
        if snapshot.metadata.state in TERMINAL_STATES:
            self.active_channels -= not change.repeated
            self._forget(channel_id)
        else:
            self._delivered[channel_id] = seq
            self.snapshots[channel_id] = snapshot
            if len(self.snapshots) > _KEPT_CHANNELS:
                self._forget(next(iter(self.snapshots)))
        if self._offer is not None:
            for row in change.due:
                self._offer(row)
        for future in self._watchers.get(channel_id, ()):
            if not future.done() and snapshot.metadata.state.value != "pending":
                future.set_result(snapshot)

    async def settled(
        self, channel_id: str, future: asyncio.Future[ChannelSnapshot]
    ) -> ChannelSnapshot:
        """The channel once it is no longer pending; `future` comes from `watch`."""
        try:
            return await future
        finally:
            watchers = self._watchers.get(channel_id, [])
            watchers[:] = [one for one in watchers if one is not future]
            if not watchers:
                self._watchers.pop(channel_id, None)

    def watch(self, channel_id: str) -> asyncio.Future[ChannelSnapshot]:
        """A future that is set when the channel is no longer pending."""
        future: asyncio.Future[ChannelSnapshot] = asyncio.get_running_loop().create_future()
        self._watchers.setdefault(channel_id, []).append(future)
        return future

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver a participant's envelopes to `receiver`."""

        def failed(envelope: Envelope, error: Exception) -> None:
            if self.when_undelivered is not None:
                note = self.when_undelivered
                self.spawn(lambda: note(envelope, agent_id, error))

        self._outboxes[agent_id] = Outbox(agent_id, receiver, self.spawn, self._entries, failed)
        self._missed.pop(agent_id, None)

    def detach(self, agent_id: str) -> None:
        """Stop delivering to a participant."""
        outbox = self._outboxes.pop(agent_id, None)
        if outbox is not None:
            outbox.close()

    def receiver(self, agent_id: str) -> Receiver | None:
        """The attached receiver of a participant."""
        outbox = self._outboxes.get(agent_id)
        return None if outbox is None else outbox.receiver

    def runner_of(self, agent_id: str) -> RunTurn | None:
        """Runs the turns of a participant in this process; `None` if nothing does."""
        outbox = self._outboxes.get(agent_id)
        return None if outbox is None else outbox.receiver.run_turn

    def attached(self) -> list[str]:
        """The ids of the attached participants."""
        return list(self._outboxes)

    def spawn(self, work: Callable[[], Any]) -> asyncio.Task[None]:
        """A task in the hub's own context, kept until it ends."""
        task: asyncio.Task[None] = asyncio.create_task(work(), context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def drained(self) -> None:
        """Return when every outbox is empty."""
        for outbox in list(self._outboxes.values()):
            await outbox.drained()

    async def close(self) -> None:
        """Detach all participants and cancel the hub's tasks."""
        for agent_id in list(self._outboxes):
            self.detach(agent_id)
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.snapshots.clear()

    def _deliver(self, envelope: Envelope, snapshot: ChannelSnapshot, seq: int) -> None:
        audience, sender_id = envelope.audience, envelope.sender_id
        counts = envelope.event_type in TURN_EVENTS
        for participant in snapshot.metadata.participants:
            agent_id = participant.agent_id
            if audience is not None and agent_id not in audience and agent_id != sender_id:
                continue
            outbox = self._outboxes.get(agent_id)
            if outbox is not None:
                outbox.put(envelope, seq)
            elif counts and agent_id != sender_id and not self.is_person(agent_id):
                self._missed[agent_id] = self._missed.get(agent_id, 0) + 1

    async def _entries(
        self, channel_id: str, after: int, limit: int
    ) -> Sequence[tuple[int, Envelope]]:
        return await self.read(lambda tx: log.read_from(tx, channel_id, after, limit))

    def _set_clock(self, tx: Transaction) -> None:
        if self._clock is not None:
            tx.now = self._clock()

    async def _missed_before(self, change: Change) -> Sequence[Envelope]:
        """Envelopes before those of `change` that were never delivered.

        A sender may be cancelled, or its write may fail late, after its envelope was accepted. The
        next change of the channel then delivers it first, so that deliveries follow the log.
        """
        first = change.snapshot.seq - len(change.envelopes)
        seq = self._delivered.get(change.channel_id, first)
        if seq == first:
            return ()
        entries = await self.read(lambda tx: log.read_from(tx, change.channel_id, seq, first - seq))
        return [envelope for _, envelope in entries]

    def _forget(self, channel_id: str) -> None:
        self.whole.discard(channel_id)
        self.snapshots.pop(channel_id, None)
        self._delivered.pop(channel_id, None)
        self._locks.pop(channel_id, None)

    def _look_again(self, channel_id: str) -> None:
        """Deliver what an operation did whose caller was cancelled or whose write failed late."""

        async def look() -> None:
            async with self._locks.setdefault(channel_id, asyncio.Lock()):
                try:
                    # A write, though it only reads: it runs after the operation in doubt.
                    current = partial(self._current, channel_id=channel_id)
                    change = await self._write(current, channel_id)
                    self.tell(change, await self._missed_before(change))
                except AgentAdapterError as exc:
                    _log.info("%s: %s", channel_id, exc)

        self.spawn(look)

    def _current(self, tx: Transaction, channel_id: str) -> Change:
        row = channel_row(tx, channel_id)
        turn = tx.get("turns", row["turn_id"]) if row["turn_id"] is not None else None
        due = () if turn is None or turn["state"] != "due" or turn["due_at"] is None else (turn,)
        return Change(channel_id, load_snapshot(tx, row, self._adapters), due=due)
