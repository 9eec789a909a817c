"""A hub's side of participants that live in other processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agent_adapter.core.errors import NetworkError, StaleTurn
from agent_adapter.flow.envelope import Envelope, visible_to
from agent_adapter.network.channels.log import envelope_of, read_from
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.frames import Frame, Notify, TurnStart
from agent_adapter.network.links.wire import failure_from_wire, started_to_wire
from agent_adapter.network.turns.turn_types import RunTurn, StartedTurn, TurnRef

if TYPE_CHECKING:
    from agent_adapter.network.hub.hub import Hub

__all__ = ["Outlet", "Round", "Seat", "catch_up"]

_log = logging.getLogger("agent_adapter.network")

_PAGE = 200
_CHANNELS = 1000


class Outlet(Protocol):
    """A connection as far as a seat needs it."""

    async def push(self, frame: Frame) -> None:
        """Send a frame; `ConnectionError` when the wire is cut."""
        ...


@dataclass(slots=True)
class Round:
    """A turn that a process elsewhere is running, or is to run."""

    started: StartedTurn
    over: asyncio.Future[NetworkError | None]

    @property
    def ref(self) -> TurnRef:
        """The hub's own name of the attempt."""
        return self.started.ref


@dataclass(eq=False)
class Seat:
    """What is attached to the hub for a participant that lives elsewhere.

    It outlives a cut wire for a while, so that a round under way is not run twice because of it.
    `instance` is the secret of the process that it belongs to.
    """

    hub: Hub
    passport: Passport
    instance: str
    outlet: Outlet | None = None
    rounds: dict[str, Round] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def agent_id(self) -> str:
        """The participant's id."""
        return self.passport.agent_id or ""

    @property
    def run_turn(self) -> RunTurn | None:
        """Has a round run elsewhere; `None` for a person."""
        return None if self.passport.effective_kind == "human" else self._run_turn

    async def deliver(self, envelope: Envelope) -> None:
        """Send an envelope on; what comes while the wire is cut is caught up on later."""
        async with self.gate:
            if envelope.envelope_id in self.told:
                self.told.discard(envelope.envelope_id)
                return
            await self._push(Notify(agent_id=self.agent_id, envelope=envelope.to_dict()))

    def round_of(self, ref: Mapping[str, Any]) -> Round:
        """The round that a process elsewhere names; `StaleTurn` when it is not its to end."""
        turn_id, attempt = str(ref.get("turn_id")), ref.get("attempt")
        found = self.rounds.get(turn_id)
        if found is None or found.ref.attempt != attempt:
            raise StaleTurn(f"attempt {attempt} of turn {turn_id} is not under way here")
        return found

    def end(self, found: Round, kind: str, message: str) -> None:
        """The process elsewhere is done with a round."""
        if not found.over.done():
            found.over.set_result(failure_from_wire(kind, message) if kind else None)

    def depth_floor(self) -> int:
        """How deep a message of the participant is at least: one more than a turn of its own."""
        depths = [
            0 if item.started.trigger is None else item.started.trigger.depth
            for item in self.rounds.values()
        ]
        return min(depths) + 1 if depths else 0

    async def resend(self, running: Iterable[Mapping[str, Any]]) -> None:
        """Send again the rounds that the process elsewhere does not know of."""
        known = {(str(item.get("turn_id")), item.get("attempt")) for item in running}
        for found in list(self.rounds.values()):
            if (found.ref.turn_id, found.ref.attempt) not in known:
                await self._send(found)

    async def _run_turn(self, started: StartedTurn) -> None:
        over: asyncio.Future[NetworkError | None] = asyncio.get_running_loop().create_future()
        found = Round(started, over)
        self.rounds[started.turn_id] = found
        try:
            await self._send(found)
            error = await over
        finally:
            if self.rounds.get(started.turn_id) is found:
                del self.rounds[started.turn_id]
        if error is not None:
            raise error

    async def _send(self, found: Round) -> None:
        metadata = found.started.metadata
        adapter = self.hub.adapters.get(metadata.manifest.type, metadata.manifest.version)
        wire = started_to_wire(found.started, adapter)
        async with self.gate:
            await self._push(TurnStart(agent_id=self.agent_id, started=wire))

    async def _push(self, frame: Frame) -> None:
        # What does not get through is caught up on when the process is back.
        if self.outlet is not None:
            with suppress(ConnectionError):
                await self.outlet.push(frame)


async def catch_up(seat: Seat, cursors: Mapping[str, str], seen_at: str) -> None:
    """Send what the participant has missed: after its cursors, and in channels it never heard of.

    `cursors` name the last envelope that came, by channel; `seen_at` is when the last one was sent.
    """
    known = await seat.hub.list_channels(agent_id=seat.agent_id, limit=_CHANNELS)
    seat.told.clear()
    for metadata in reversed(known):
        cursor = cursors.get(metadata.channel_id)
        if cursor is None and metadata.is_terminal() and (metadata.closed_at or "") < seen_at:
            continue
        await _replay(seat, metadata, cursor)


async def _replay(seat: Seat, metadata: ChannelMetadata, cursor: str | None) -> None:
    channel_id, store = metadata.channel_id, seat.hub.store
    at = 0
    if cursor is not None:
        at = await store.read(lambda tx: _place(tx, channel_id, cursor))
    while True:
        page = await store.read(_pages(channel_id, at))
        for at, envelope in page:  # noqa: B007  # the last place is where the next page begins
            if visible_to(envelope, seat.agent_id):
                seat.told.add(envelope.envelope_id)
                await seat._push(Notify(agent_id=seat.agent_id, envelope=envelope.to_dict()))
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
