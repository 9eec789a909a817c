"""`HostedParticipant`: a participant of a hub elsewhere that runs in this process."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED, Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.frames import Notify, TurnStart
from agent_adapter.network.links.wire import error_to_wire, started_from_wire
from agent_adapter.network.turns.turn_types import Receiver, RunTurn, TurnRef

_log = logging.getLogger("agent_adapter.network")

_ENDS = (EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED)


class TakenTurn:
    """A turn that a handler of this process takes; `over` is set when its attempt has ended."""

    def __init__(self, run_turn: RunTurn) -> None:
        self.run_turn = run_turn
        self.over = asyncio.Event()


class Home(Protocol):
    """The remote hub, as far as a hosted participant needs it.

    Attributes:
        adapters: the channel types it knows.
        taken: the turns that handlers take, by their ids.
    """

    adapters: AdapterRegistry
    taken: dict[str, TakenTurn]

    async def release_turn(self, turn: TurnRef, /) -> None:
        """Give a turn back without counting the attempt."""
        ...

    async def request(self, op: str, params: dict[str, Any]) -> Any:
        """The hub's answer to an operation."""
        ...


class HostedParticipant:
    """Deliveries to one participant, its cursor in each channel, and its running attempts.

    Attributes:
        passport: its identity record.
        receiver: takes its deliveries and runs its turns.
    """

    def __init__(self, hub: Home, passport: Passport, params: dict[str, Any], at: str) -> None:
        self.passport = passport
        self.receiver: Receiver | None = None
        self._hub = hub
        self._params = params
        # Cursors of open channels; a new connection continues after them.
        self._cursors: dict[str, str] = {}
        self._seen_at = at
        self._waiting: deque[Envelope] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._attempts: dict[tuple[str, int], asyncio.Task[None]] = {}

    def registration(self) -> dict[str, Any]:
        """The parameters of `register` after a reconnection, with what has arrived."""
        running = [{"turn_id": turn_id, "attempt": number} for turn_id, number in self._attempts]
        return self._params | {
            "cursors": dict(self._cursors),
            "seen_at": self._seen_at,
            "running": running,
        }

    def take(self, frame: Notify | TurnStart) -> None:
        """Deliver an envelope, after those before it; or start an attempt, once."""
        if isinstance(frame, TurnStart):
            self._begin(frame.started)
            return
        envelope = Envelope.from_dict(frame.envelope)
        self._note(envelope)
        self._waiting.append(envelope)
        if self._pump is None and self.receiver is not None:
            self._pump = asyncio.create_task(self._deliver(self.receiver))

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancel running work; returns the tasks that are ending."""
        tasks = [*self._attempts.values(), *([] if self._pump is None else [self._pump])]
        stopped = [task for task in tasks if task is not asyncio.current_task()]
        for task in stopped:
            task.cancel()
        return stopped

    def _note(self, envelope: Envelope) -> None:
        self._seen_at = max(self._seen_at, envelope.created_at)
        if envelope.event_type in _ENDS:
            self._cursors.pop(envelope.channel_id, None)
        else:
            self._cursors[envelope.channel_id] = envelope.envelope_id

    async def _deliver(self, receiver: Receiver) -> None:
        try:
            while self._waiting:
                envelope = self._waiting.popleft()
                try:
                    await receiver.deliver(envelope, 0)
                except Exception:
                    _log.exception("%s failed to take an envelope", self.passport.name)
        finally:
            self._pump = None

    def _begin(self, started: Mapping[str, Any]) -> None:
        key = (str(started["turn_id"]), int(started["attempt"]))
        if key not in self._attempts:
            before = [task for (id, _), task in self._attempts.items() if id == key[0]]
            self._attempts[key] = asyncio.create_task(self._attempt(key, started, before))

    async def _attempt(
        self, key: tuple[str, int], started: Mapping[str, Any], before: Sequence[asyncio.Task[None]]
    ) -> None:
        try:
            for task in before:
                # The hub has superseded the earlier attempt; two at once would race for its calls.
                task.cancel()
            await asyncio.gather(*before, return_exceptions=True)
            error = await self._outcome(started)
            kind, message = ("", "") if error is None else error_to_wire(error)
            over = {
                "turn": {"turn_id": key[0], "attempt": key[1]},
                "error": kind,
                "message": message[:2000],
            }
            # Listed as running until the hub has answered: after a reconnection it would otherwise
            # send the turn again, and the round's effects would happen twice.
            await self._hub.request("turn_over", over)
        except NetworkError as exc:
            _log.info("the end of %s was not reported to the hub: %s", key[0], exc)
        finally:
            self._attempts.pop(key, None)
            if (taken := self._hub.taken.get(key[0])) is not None:
                taken.over.set()

    async def _outcome(self, started: Mapping[str, Any]) -> Exception | None:
        """Run the attempt; returns the error with which it ended."""
        try:
            await self._run(started)
        except Exception as exc:
            if not isinstance(exc, NetworkError):
                _log.exception("a turn of %s failed", self.passport.name)
            return exc
        return None

    async def _run(self, data: Mapping[str, Any]) -> None:
        started = started_from_wire(data, self._hub.adapters)
        taken = self._hub.taken.get(started.turn_id)
        run_turn = None if self.receiver is None else self.receiver.run_turn
        if taken is not None:
            await taken.run_turn(started)
        elif run_turn is None:
            # A handler takes the agent's place: the hub must not start the turn again and again.
            await self._hub.request(
                "set_by_hand", {"agent_id": self.passport.agent_id, "by_hand": True}
            )
            await self._hub.release_turn(started.ref)
        else:
            await run_turn(started)
