"""`Outbox`: what waits to be delivered to one participant, in order, without holding up the hub."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.claims import Receiver

__all__ = ["Outbox"]

_log = logging.getLogger("agent_adapter.network")


class Outbox:
    """A queue of its own for one receiver; a receiver that raises loses that envelope alone."""

    def __init__(
        self, receiver: Receiver, start: Callable[[Callable[[], object]], asyncio.Task[None]]
    ) -> None:
        self.receiver = receiver
        self._start = start
        self._waiting: deque[Envelope] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def size(self) -> int:
        """How many envelopes wait."""
        return len(self._waiting)

    def put(self, envelope: Envelope) -> None:
        """Deliver `envelope` after those that wait."""
        if self._closed:
            return
        self._waiting.append(envelope)
        if self._pump is None:
            self._pump = self._start(self._deliver)

    async def drained(self) -> None:
        """Return when nothing waits any more."""
        while self._pump is not None:
            await asyncio.wait([self._pump])

    def close(self) -> None:
        """Deliver nothing more; what is being delivered is cancelled."""
        self._closed = True
        self._waiting.clear()
        if self._pump is not None and self._pump is not asyncio.current_task():
            self._pump.cancel()

    async def _deliver(self) -> None:
        try:
            while self._waiting:
                envelope = self._waiting.popleft()
                try:
                    await self.receiver.deliver(envelope)
                except Exception:
                    _log.exception("a participant failed to take %s", envelope.envelope_id)
        finally:
            self._pump = None
