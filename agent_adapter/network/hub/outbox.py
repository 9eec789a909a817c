"""`Outbox`: delivers envelopes to one participant, in order, without blocking the hub."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent_adapter.flow.envelope import TURN_EVENTS, Envelope, visible_to
from agent_adapter.network.turns.turn_types import Receiver

_KEPT = 1000
_PAGE = 100
_log = logging.getLogger("agent_adapter.network")

ReadLog = Callable[[str, int, int], Awaitable[Sequence[tuple[int, Envelope]]]]
"""`await read(channel_id, after, limit)` returns entries of a log with their sequence numbers."""


@dataclass(slots=True)
class _Behind:
    """The entries of one log that are still to be read for a participant."""

    after: int
    last: int


class Outbox:
    """A queue and a task for one receiver.

    If a receiver raises, the exception is logged and only that envelope is lost. At most 1,000
    envelopes are held: of channels with more, a cursor is kept and the log is read. `messages` is
    the number of waiting texts and packets of others; the hub's own events do not count.
    """

    def __init__(
        self,
        agent_id: str,
        receiver: Receiver,
        start: Callable[[Callable[[], object]], asyncio.Task[None]],
        read: ReadLog,
        on_failure: Callable[[Envelope, Exception], None] | None = None,
    ) -> None:
        self.receiver = receiver
        self._on_failure = on_failure
        self.messages = 0
        self._agent_id = agent_id
        self._read = read
        self._waiting: deque[tuple[Envelope, int]] = deque()
        self._behind: dict[str, _Behind] = {}
        self._more: asyncio.Future[None] | None = None
        self._empty: list[asyncio.Future[None]] = []
        self._busy = False
        self._pump = start(self._deliver)

    def put(self, envelope: Envelope, seq: int) -> None:
        """Deliver `envelope`, entry `seq` of its channel's log, after those that are waiting."""
        self.messages += self._counts(envelope)
        behind = self._behind.get(envelope.channel_id)
        if behind is not None:
            behind.last = seq
        elif len(self._waiting) >= _KEPT:
            self._behind[envelope.channel_id] = _Behind(seq - 1, seq)
        else:
            self._waiting.append((envelope, seq))
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    async def drained(self) -> None:
        """Return when the queue is empty, or delivery has stopped."""
        while (self._waiting or self._behind or self._busy) and not self._pump.done():
            empty: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._empty.append(empty)
            await asyncio.wait([empty, self._pump], return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        """Stop delivering; a delivery under way is cancelled."""
        self._waiting.clear()
        self._behind.clear()
        self.messages = 0
        if self._pump is not asyncio.current_task():
            self._pump.cancel()

    def _counts(self, envelope: Envelope) -> bool:
        return envelope.event_type in TURN_EVENTS and envelope.sender_id != self._agent_id

    async def _deliver(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._waiting or self._behind:
                self._busy = True
                if self._waiting:
                    await self._deliver_one(*self._waiting.popleft())
                else:
                    await self._catch_up(next(iter(self._behind)))
            self._busy = False
            self._tell_empty()
            self._more = loop.create_future()
            try:
                await self._more
            finally:
                self._more = None

    async def _deliver_one(self, envelope: Envelope, seq: int) -> None:
        self.messages -= self._counts(envelope)
        try:
            await self.receiver.deliver(envelope, seq)
        except Exception as exc:
            _log.exception("a participant failed to take %s", envelope.envelope_id)
            if self._on_failure is not None:
                self._on_failure(envelope, exc)

    async def _catch_up(self, channel_id: str) -> None:
        """Deliver what the log has beyond the envelopes that were held."""
        behind = self._behind[channel_id]
        try:
            page = await self._read(channel_id, behind.after, _PAGE)
        except Exception:
            _log.exception("the log of %s cannot be read; its messages wait there", channel_id)
            page = ()
        for seq, envelope in page:
            behind.after = seq
            if visible_to(envelope, self._agent_id):
                await self._deliver_one(envelope, seq)
        if not page or behind.after >= behind.last:
            self._behind.pop(channel_id, None)

    def _tell_empty(self) -> None:
        for empty in self._empty:
            if not empty.done():
                empty.set_result(None)
        self._empty.clear()


class Backlog(Mapping[str, int]):
    """The number of undelivered messages per participant, counted on access."""

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
