"""`Outbox`: delivers envelopes to one participant, in order, without blocking the hub."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from agent_adapter.flow.envelope import TURN_EVENTS, Envelope
from agent_adapter.network.turns.turn_types import Receiver

_log = logging.getLogger("agent_adapter.network")


class Outbox:
    """A queue and a task for one receiver.

    If a receiver raises, the exception is logged and only that envelope is lost. `messages` is the
    number of waiting texts and packets; the hub's own events do not count.
    """

    def __init__(
        self,
        receiver: Receiver,
        start: Callable[[Callable[[], object]], asyncio.Task[None]],
        on_failure: Callable[[Envelope, Exception], None] | None = None,
    ) -> None:
        self.receiver = receiver
        self._on_failure = on_failure
        self.messages = 0
        self._waiting: deque[tuple[Envelope, int]] = deque()
        self._more: asyncio.Future[None] | None = None
        self._empty: list[asyncio.Future[None]] = []
        self._busy = False
        self._pump = start(self._deliver)

    def put(self, envelope: Envelope, seq: int) -> None:
        """Deliver `envelope`, entry `seq` of its channel's log, after those that are waiting."""
        self._waiting.append((envelope, seq))
        self.messages += envelope.event_type in TURN_EVENTS
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    async def drained(self) -> None:
        """Return when the queue is empty, or delivery has stopped."""
        while (self._waiting or self._busy) and not self._pump.done():
            empty: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._empty.append(empty)
            await asyncio.wait([empty, self._pump], return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        """Stop delivering; a delivery under way is cancelled."""
        self._waiting.clear()
        self.messages = 0
        if self._pump is not asyncio.current_task():
            self._pump.cancel()

    async def _deliver(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._waiting:
                self._busy = True
                envelope, seq = self._waiting.popleft()
                self.messages -= envelope.event_type in TURN_EVENTS
                try:
                    await self.receiver.deliver(envelope, seq)
                except Exception as exc:
                    _log.exception("a participant failed to take %s", envelope.envelope_id)
                    if self._on_failure is not None:
                        self._on_failure(envelope, exc)
            self._busy = False
            self._tell_empty()
            self._more = loop.create_future()
            try:
                await self._more
            finally:
                self._more = None

    def _tell_empty(self) -> None:
        for empty in self._empty:
            if not empty.done():
                empty.set_result(None)
        self._empty.clear()
