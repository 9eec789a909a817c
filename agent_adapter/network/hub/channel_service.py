"""`ChannelService`: runs operations on channels and notifies attached participants of changes."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from agent_adapter.core.errors import AgentAdapterError, NetworkError, NotFoundError, StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.flow.envelope import Envelope, is_turn, visible_to
from agent_adapter.network.channels import log
from agent_adapter.network.channels.log import Refused
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row, load_snapshot
from agent_adapter.network.channels.transaction import Change, HubContext, RollbackRequired
from agent_adapter.network.hub.outbox import Outbox
from agent_adapter.network.turns.turn_types import Receiver
from agent_adapter.store.base import Operation, Row, Store, Transaction

__all__ = ["ChannelOperation", "ChannelService"]

T = TypeVar("T")

ChannelOperation = Callable[[Transaction, ChannelSnapshot | None], Any]
"""An operation on one channel, given what is known of it."""

_KEPT_CHANNELS = 4096
_log = logging.getLogger("agent_adapter.network")


class _Waiting(Mapping[str, int]):
    """How many messages wait for each participant, counted when it is asked for."""

    def __init__(self, outboxes: Mapping[str, Outbox], missed: Mapping[str, int]) -> None:
        self._outboxes = outboxes
        self._missed = missed

    def __getitem__(self, agent_id: str) -> int:
        outbox = self._outboxes.get(agent_id)
        return self._missed.get(agent_id, 0) if outbox is None else outbox.messages

    def __iter__(self) -> Iterator[str]:
        return iter({**self._outboxes, **self._missed})

    def __len__(self) -> int:
        return len({**self._outboxes, **self._missed})


class ChannelService:
    """The store of a hub, the channels that it has read, and the receivers attached to it.

    Changes of one channel follow each other; those of different channels share the store's
    transactions. What changed is told after it is durable, in the order of the log.
    """

    def __init__(
        self,
        store: Store,
        desk: HubContext,
        *,
        clock: Clock | None,
        context: contextvars.Context,
        offer: Callable[[Row], None],
    ) -> None:
        self.store = store
        self.desk = desk
        self._clock = clock
        self._context = context
        self._offer = offer
        self._known: OrderedDict[str, ChannelSnapshot] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._outboxes: dict[str, Outbox] = {}
        self._missed: dict[str, int] = {}
        self.waiting = _Waiting(self._outboxes, self._missed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._watchers: dict[str, list[asyncio.Future[ChannelSnapshot]]] = {}

    # --- operations ---------------------------------------------------------------------------

    async def write(self, op: Operation[T]) -> T:
        """Run `op`; a refusal is raised."""

        def run(tx: Transaction) -> Any:
            self._set_clock(tx)
            try:
                return op(tx)
            except NetworkError as exc:
                # As a value: nothing else of the store's transaction is taken back for it.
                return Refused(exc)

        try:
            result: Any = await self.store.write(run)
        except RollbackRequired as exc:
            raise exc.error from None
        if type(result) is Refused:
            raise result.error
        return result  # type: ignore[no-any-return]  # what `op` gave

    async def read(self, op: Operation[T]) -> T:
        """Run `op`, which only reads."""

        def run(tx: Transaction) -> T:
            self._set_clock(tx)
            return op(tx)

        return await self.store.read(run)

    async def change(self, channel_id: str, op: ChannelOperation) -> Any:
        """Run `op` on a channel, after every other change of it, and tell what it did."""
        lock = self._locks.get(channel_id)
        if lock is None:
            lock = self._locks[channel_id] = asyncio.Lock()
        async with lock:
            cached = self._known.get(channel_id)
            try:
                result = await self.write(lambda tx: op(tx, cached))
            except (asyncio.CancelledError, StoreError):
                # What was asked for may have been done, or will be.
                self._look_again(channel_id, None if cached is None else cached.seq)
                raise
            except NotFoundError:
                self._locks.pop(channel_id, None)
                raise
            if type(result) is Change:
                self.tell(result)
            return result

    async def known(self, channel_id: str) -> ChannelSnapshot:
        """The channel as it is now; `NotFoundError` where there is none."""
        cached = self._known.get(channel_id)
        adapters = self.desk.adapters

        def op(tx: Transaction) -> ChannelSnapshot:
            return load_snapshot(tx, channel_row(tx, channel_id), adapters, cached)

        return await self.read(op)

    def cached(self, channel_id: str) -> ChannelSnapshot | None:
        """The channel as this process last saw it."""
        return self._known.get(channel_id)

    def tell(self, change: Change) -> None:
        """Tell those who may know of it what has become durable."""
        channel_id, known = change.channel_id, change.known
        if known.metadata.state.is_terminal:
            self._known.pop(channel_id, None)
            self._locks.pop(channel_id, None)
        else:
            self._known[channel_id] = known
            if len(self._known) > _KEPT_CHANNELS:
                oldest, _ = self._known.popitem(last=False)
                self._locks.pop(oldest, None)
        for envelope in change.envelopes:
            self._deliver(envelope, known)
        for row in change.due:
            self._offer(row)
        for future in self._watchers.get(channel_id, ()):
            if not future.done() and known.metadata.state.value != "pending":
                future.set_result(known)

    async def settled(
        self, channel_id: str, future: asyncio.Future[ChannelSnapshot]
    ) -> ChannelSnapshot:
        """The channel once it is no longer pending; `future` comes from `watch`."""
        try:
            return await future
        finally:
            watchers = self._watchers.get(channel_id, [])
            if future in watchers:
                watchers.remove(future)
            if not watchers:
                self._watchers.pop(channel_id, None)

    def watch(self, channel_id: str) -> asyncio.Future[ChannelSnapshot]:
        """A future that is set when the channel is no longer pending."""
        future: asyncio.Future[ChannelSnapshot] = asyncio.get_running_loop().create_future()
        self._watchers.setdefault(channel_id, []).append(future)
        return future

    # --- receivers ----------------------------------------------------------------------------

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver to `receiver` from now on."""
        self._outboxes[agent_id] = Outbox(receiver, self.spawn)
        self._missed.pop(agent_id, None)

    def detach(self, agent_id: str) -> None:
        """Deliver nothing more to that participant."""
        outbox = self._outboxes.pop(agent_id, None)
        if outbox is not None:
            outbox.close()

    def receiver(self, agent_id: str) -> Receiver | None:
        """Who is attached for that participant."""
        outbox = self._outboxes.get(agent_id)
        return None if outbox is None else outbox.receiver

    def attached(self) -> list[str]:
        """Ids of those who are attached."""
        return list(self._outboxes)

    def spawn(self, work: Callable[[], Any]) -> asyncio.Task[None]:
        """A task in the hub's own context, kept until it ends."""
        task: asyncio.Task[None] = asyncio.create_task(work(), context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def drained(self) -> None:
        """Return when nothing waits to be delivered."""
        for outbox in list(self._outboxes.values()):
            await outbox.drained()

    async def close(self) -> None:
        """Let go of everybody who is attached."""
        for agent_id in list(self._outboxes):
            self.detach(agent_id)
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._known.clear()

    def _deliver(self, envelope: Envelope, known: ChannelSnapshot) -> None:
        for participant in known.metadata.participants:
            agent_id = participant.agent_id
            if not visible_to(envelope, agent_id):
                continue
            outbox = self._outboxes.get(agent_id)
            if outbox is not None:
                outbox.put(envelope)
            elif is_turn(envelope):
                self._missed[agent_id] = self._missed.get(agent_id, 0) + 1

    def _set_clock(self, tx: Transaction) -> None:
        if self._clock is not None:
            tx.now = self._clock()

    def _look_again(self, channel_id: str, seq: int | None) -> None:
        """Whoever asked is gone, the operation is not: tell what it did, once it is durable."""

        async def look() -> None:
            async with self._locks.setdefault(channel_id, asyncio.Lock()):
                try:
                    self.tell(await self.write(lambda tx: self._since(tx, channel_id, seq)))
                except AgentAdapterError as exc:
                    _log.info("%s: %s", channel_id, exc)

        self.spawn(look)

    def _since(self, tx: Transaction, channel_id: str, seq: int | None) -> Change:
        row = channel_row(tx, channel_id)
        known = load_snapshot(tx, row, self.desk.adapters)
        first = row["seq"] if seq is None else seq
        entries = log.read_from(tx, channel_id, first)
        turn = tx.get("turns", row["turn_id"]) if row["turn_id"] is not None else None
        due = turn is not None and turn["state"] == "due" and turn["due_at"] is not None
        return Change(
            channel_id,
            known,
            envelopes=tuple(envelope for _, envelope in entries),
            due=(turn,) if due and turn is not None else (),
        )
