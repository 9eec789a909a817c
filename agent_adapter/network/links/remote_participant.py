"""`RemoteParticipant`: the hub's side of a participant that lives in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_adapter.core.errors import NetworkError, StaleTurn
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_EXPIRED,
    Envelope,
    visible_to,
)
from agent_adapter.network.channels.log import envelope_of, read_from
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.frames import Frame, Notify, TurnStart
from agent_adapter.network.links.served_hub import ServedHub
from agent_adapter.network.links.wire import failure_from_wire, started_to_wire
from agent_adapter.network.turns.turn_types import RunTurn, StartedTurn, TurnRef

_PAGE = 200
_CHANNELS = 1000
_ENDS = (EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED)


class FrameSink(Protocol):
    """A connection that takes frames."""

    async def push(self, frame: Frame) -> None:
        """Send a frame; `ConnectionError` when the connection is lost."""
        ...


@dataclass(slots=True)
class RemoteAttempt:
    """An attempt of a turn that another process runs."""

    started: StartedTurn
    over: asyncio.Future[NetworkError | None]

    @property
    def ref(self) -> TurnRef:
        """The hub's own reference to the attempt."""
        return self.started.ref

    def end(self, kind: str, message: str) -> None:
        """Record the end of the attempt; `kind` is that of its error, or empty."""
        if not self.over.done():
            self.over.set_result(failure_from_wire(kind, message) if kind else None)


@dataclass(eq=False)
class RemoteParticipant:
    """The receiver of a participant that lives in another process.

    It outlives a lost connection for a grace period, so that a running attempt is not run twice.

    Attributes:
        instance: the secret of the process that it belongs to.
        sink: its connection; `None` while disconnected.
        attempts: what its process is running, by turn id.
        sent: the last sequence number sent, per channel; deliveries up to it are repetitions.
        by_hand: whether its process takes its turns itself, so that the hub starts none.
        gate: held while something is sent, so that frames keep the order of the log.
    """

    hub: ServedHub
    passport: Passport
    instance: str
    sink: FrameSink | None = None
    attempts: dict[str, RemoteAttempt] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    by_hand: bool = False
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)
    _taken: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def agent_id(self) -> str:
        """The participant's id."""
        return self.passport.agent_id or ""

    @property
    def run_turn(self) -> RunTurn | None:
        """Runs a turn in the other process; `None` if the hub starts none."""
        by_hand = self.by_hand or self.passport.effective_kind == "human"
        return None if by_hand else self._run_turn

    async def take(self, turn_id: str) -> bool:
        """Run a due turn that the other process asks for; returns, once it runs, if it was due."""
        begun = asyncio.Event()

        async def run(started: StartedTurn) -> None:
            begun.set()
            await self._run_turn(started)

        work = asyncio.ensure_future(self.hub.run_turn(turn_id, run))
        self._taken.add(work)
        work.add_done_callback(self._taken.discard)
        waiting = asyncio.ensure_future(begun.wait())
        try:
            await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if work.done():
            work.result()
        return begun.is_set()

    async def deliver(self, envelope: Envelope, seq: int) -> None:
        """Forward an envelope; while disconnected it is replayed later."""
        async with self.gate:
            channel_id = envelope.channel_id
            # A replay after a reconnection may have overtaken envelopes that still waited.
            if seq > self.sent.get(channel_id, 0):
                self.sent[channel_id] = seq
                await self.send(Notify(agent_id=self.agent_id, envelope=envelope.to_dict()))
            if envelope.event_type in _ENDS:
                self.sent.pop(channel_id, None)

    def attempt(self, turn: TurnRef) -> RemoteAttempt:
        """The attempt that the other process names; `StaleTurn` if it is not running."""
        found = self.attempts.get(turn.turn_id)
        if found is None or found.ref.attempt != turn.attempt:
            raise StaleTurn(f"attempt {turn.attempt} of turn {turn.turn_id} is not under way here")
        return found

    def depth_floor(self) -> int:
        """The least depth of a message of the participant: one more than a turn of its own."""
        depths = [
            0 if item.started.trigger is None else item.started.trigger.depth
            for item in self.attempts.values()
        ]
        return min(depths) + 1 if depths else 0

    async def resend(self, running: Iterable[TurnRef]) -> None:
        """Send the attempts again that the other process does not have.

        An attempt whose end is recorded is not sent again: only the report of its end is missing.
        """
        known = {(item.turn_id, item.attempt) for item in running}
        for found in list(self.attempts.values()):
            if (found.ref.turn_id, found.ref.attempt) in known:
                continue
            if self.hub.has_ended(found.ref):
                found.end("", "")
            elif not found.over.done():
                await self._send_turn(found)

    async def send(self, frame: Frame) -> None:
        """Send a frame if connected; the caller holds the gate."""
        if self.sink is not None:
            with suppress(ConnectionError):
                await self.sink.push(frame)

    async def _run_turn(self, started: StartedTurn) -> None:
        over: asyncio.Future[NetworkError | None] = asyncio.get_running_loop().create_future()
        found = RemoteAttempt(started, over)
        self.attempts[started.turn_id] = found
        try:
            await self._send_turn(found)
            error = await over
        finally:
            if self.attempts.get(started.turn_id) is found:
                del self.attempts[started.turn_id]
        if error is not None:
            raise error

    async def _send_turn(self, found: RemoteAttempt) -> None:
        manifest = found.started.metadata.manifest
        adapter = self.hub.adapters.get(manifest.type, manifest.version)
        wire = started_to_wire(found.started, adapter)
        async with self.gate:
            await self.send(TurnStart(agent_id=self.agent_id, started=wire))


async def catch_up(
    participant: RemoteParticipant, cursors: Mapping[str, str], seen_at: str
) -> None:
    """Send the envelopes that the participant missed; the caller holds its gate.

    `cursors` names the last envelope received per channel; `seen_at` is the time of the newest.
    """
    known = await participant.hub.list_channels(agent_id=participant.agent_id, limit=_CHANNELS)
    for metadata in reversed(known):
        cursor = cursors.get(metadata.channel_id)
        # A channel without a cursor is new to the participant, or it saw the channel's end.
        if cursor is None and metadata.is_terminal() and (metadata.closed_at or "") < seen_at:
            continue
        await _replay(participant, metadata.channel_id, cursor)


async def _replay(participant: RemoteParticipant, channel_id: str, cursor: str | None) -> None:
    agent_id, store = participant.agent_id, participant.hub.store
    at = 0
    if cursor is not None:
        at = await store.read(lambda tx: _place(tx, channel_id, cursor))
    while True:
        page = await store.read(_pages(channel_id, at))
        for at, envelope in page:
            participant.sent[channel_id] = max(at, participant.sent.get(channel_id, 0))
            if visible_to(envelope, agent_id):
                await participant.send(Notify(agent_id=agent_id, envelope=envelope.to_dict()))
        if len(page) < _PAGE:
            return


def _pages(channel_id: str, at: int) -> Callable[[Any], list[tuple[int, Envelope]]]:
    return lambda tx: read_from(tx, channel_id, at, _PAGE)


def _place(tx: Any, channel_id: str, envelope_id: str) -> int:
    """The place of an envelope in its log; 0, the beginning, for one that is not in it."""
    if envelope_of(tx, envelope_id) is None:
        return 0
    rows = tx.select("envelopes", {"envelope_id": envelope_id, "channel_id": channel_id}, limit=1)
    return int(rows[0]["seq"]) if rows else 0
