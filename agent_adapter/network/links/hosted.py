"""A participant that this process hosts for a hub elsewhere: its deliveries and its rounds."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED, Envelope
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.frames import Notify, TurnStart
from agent_adapter.network.links.wire import error_to_wire, started_from_wire
from agent_adapter.network.turns.turn_types import Receiver

if TYPE_CHECKING:
    from agent_adapter.network.links.far_hub import FarHub

__all__ = ["Hosted"]

_log = logging.getLogger("agent_adapter.network")

_ENDS = (EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED)


class Hosted:
    """What came for one participant, where it is in each channel, and its rounds under way.

    Attributes:
        passport: who it is.
        params: what it was registered with, to be said again after a cut.
        receiver: who takes its deliveries and runs its rounds.
        cursors: the last envelope that came, by channel; of channels that go on.
        seen_at: when the last envelope was accepted.
    """

    def __init__(self, hub: FarHub, passport: Passport, params: dict[str, Any], at: str) -> None:
        self.passport = passport
        self.params = params
        self.receiver: Receiver | None = None
        self.cursors: dict[str, str] = {}
        self.seen_at = at
        self._hub = hub
        self._waiting: deque[Envelope] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._rounds: dict[tuple[str, int], asyncio.Task[None]] = {}

    @property
    def running(self) -> list[dict[str, Any]]:
        """The attempts under way, as they are named over the wire."""
        return [{"turn_id": turn_id, "attempt": attempt} for turn_id, attempt in self._rounds]

    def take(self, frame: Notify | TurnStart) -> None:
        """Deliver an envelope, after those before it; or begin a round, once."""
        if isinstance(frame, TurnStart):
            self._begin(frame.started)
            return
        envelope = Envelope.from_dict(frame.envelope)
        self._note(envelope)
        self._waiting.append(envelope)
        if self._pump is None and self.receiver is not None:
            self._pump = asyncio.create_task(self._deliver(self.receiver))

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancel what is under way; the tasks that then end."""
        tasks = [*self._rounds.values(), *([] if self._pump is None else [self._pump])]
        stopped = [task for task in tasks if task is not asyncio.current_task()]
        for task in stopped:
            task.cancel()
        return stopped

    def _note(self, envelope: Envelope) -> None:
        self.seen_at = max(self.seen_at, envelope.created_at)
        if envelope.event_type in _ENDS:
            self.cursors.pop(envelope.channel_id, None)
        else:
            self.cursors[envelope.channel_id] = envelope.envelope_id

    async def _deliver(self, receiver: Receiver) -> None:
        try:
            while self._waiting:
                envelope = self._waiting.popleft()
                try:
                    await receiver.deliver(envelope)
                except Exception:
                    _log.exception("%s failed to take an envelope", self.passport.name)
        finally:
            self._pump = None

    def _begin(self, started: Mapping[str, Any]) -> None:
        key = (str(started["turn_id"]), int(started["attempt"]))
        if key not in self._rounds:
            before = [task for (id, _), task in self._rounds.items() if id == key[0]]
            self._rounds[key] = asyncio.create_task(self._round(key, started, before))

    async def _round(
        self, key: tuple[str, int], started: Mapping[str, Any], before: Sequence[asyncio.Task[None]]
    ) -> None:
        error: Exception | None = None
        try:
            for task in before:
                # The hub has given up an earlier attempt; two at once would meet in their calls.
                task.cancel()
            await asyncio.gather(*before, return_exceptions=True)
            await self._run(started)
        except Exception as exc:
            error = exc
            if not isinstance(exc, NetworkError):
                _log.exception("a round of %s failed", self.passport.name)
        finally:
            self._rounds.pop(key, None)
        kind, message = ("", "") if error is None else error_to_wire(error)
        try:
            await self._hub.turn_over(key, kind, message[:2000])
        except NetworkError as exc:
            _log.info("the hub did not hear of the end of %s: %s", key[0], exc)

    async def _run(self, data: Mapping[str, Any]) -> None:
        channel = data["metadata"]["manifest"]
        adapter = self._hub.adapters.get(channel["type"], channel["version"])
        started = started_from_wire(data, adapter)
        run_turn = None if self.receiver is None else self.receiver.run_turn
        if run_turn is None:
            await self._hub.release_turn(started.ref)
        else:
            await run_turn(started)
