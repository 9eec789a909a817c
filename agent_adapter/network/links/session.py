"""One connection of another process to a hub: what it asks is answered, once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import AccessDeniedError, AuthError, NetworkError, ProtocolError
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.frames import (
    VERSION,
    Frame,
    Request,
    Response,
    Welcome,
    decode_frame,
    encode_frame,
)
from agent_adapter.network.links.params import Params
from agent_adapter.network.links.requests import OPERATIONS, READS
from agent_adapter.network.links.seats import Seat, catch_up
from agent_adapter.network.links.wire import error_to_wire
from agent_adapter.network.rules import allows

if TYPE_CHECKING:
    from agent_adapter.network.links.server import WebSocketServer

__all__ = ["SessionOnWire"]

_log = logging.getLogger("agent_adapter.network")

_AT_ONCE = 64
_REMEMBERED = 128
_SEATS = 100


class SessionOnWire:
    """One connection: what it asks is done for the participants that it has registered."""

    def __init__(
        self, server: WebSocketServer, connection: Any, instance: str, names: Sequence[str]
    ) -> None:
        self.hub = server.hub
        self.instance = instance
        self._server = server
        self._connection = connection
        self._names = list(names)
        self._seats: dict[str, Seat] = {}
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def seats(self) -> Mapping[str, Seat]:
        """The participants that this connection has registered, by id."""
        return self._seats

    def is_trusted(self, name: str) -> bool:
        """Whether what that participant says is taken as one's own."""
        return allows(self._server.trusted, name)

    async def run(self) -> None:
        """Answer until the other end hangs up."""
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        await self.push(Welcome(version=VERSION, hub_time=now))
        async for text in self._connection:
            frame = decode_frame(text)
            if not isinstance(frame, Request):
                raise ProtocolError(f"a client sends requests, not a {frame.kind} frame")
            # Too many questions at once wait on the wire, not in memory.
            await self._free.acquire()
            task = asyncio.create_task(self._answer(frame))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def push(self, frame: Frame) -> None:
        """Send a frame; `ConnectionError` when the wire is cut."""
        from websockets.exceptions import ConnectionClosed

        async with self._writing:
            try:
                for text in encode_frame(frame):
                    await self._connection.send(text)
            except ConnectionClosed as exc:
                raise ConnectionResetError(str(exc)) from None

    async def register(self, params: Params) -> dict[str, Any]:
        """Take a participant on, or take it up again where the wire was cut."""
        passport = Passport.from_dict(params.record("passport"))
        if not allows(self._names, passport.name):
            raise AuthError(
                f"this connection may not go by the name {passport.name!r}, only by "
                f"{', '.join(self._names) or 'none'}"
            )
        if len(self._seats) >= _SEATS:
            raise AccessDeniedError(f"a connection has at most {_SEATS} participants")
        seat = await self._server.seat(self, passport, params)
        cursors = params.maybe_record("cursors")
        async with seat.gate:
            seat.outlet = self
            self._seats[seat.agent_id] = seat
            if cursors is not None:
                known = {key: str(value) for key, value in cursors.items()}
                await catch_up(seat, known, params.maybe_text("seen_at") or "")
        if not self.hub.is_connected(seat.agent_id):
            self.hub.attach(seat.agent_id, seat)
        else:
            await seat.resend(params.records("running"))
        return seat.passport.to_dict()

    async def leave(self, agent_id: str) -> None:
        """Let a participant go."""
        seat = self._seats.pop(agent_id)
        await self._server.dismiss(seat)

    def gone(self) -> None:
        """The connection has ended; what was asked is done all the same, and answered later."""
        for seat in self._seats.values():
            if seat.outlet is self:
                self._server.farewell(seat)

    async def _answer(self, request: Request) -> None:
        try:
            kept = self._server.answers_of(self.instance)
            task = kept.get(request.id)
            if task is None:
                task = asyncio.create_task(self._done(request))
                if request.op not in READS and request.op != "register":
                    kept[request.id] = task
                    while len(kept) > _REMEMBERED:
                        kept.popitem(last=False)
            response = await asyncio.shield(task)
            with contextlib.suppress(ConnectionError):
                await self.push(response)
        finally:
            self._free.release()

    async def _done(self, request: Request) -> Response:
        operation = OPERATIONS.get(request.op)
        try:
            if operation is None:
                known = ", ".join(OPERATIONS)
                raise ProtocolError(f"there is no operation {request.op!r:.80}; there are {known}")
            result = await operation(self, Params(request.op, request.params))
            return Response(id=request.id, result=result)
        except Exception as exc:
            if not isinstance(exc, NetworkError):
                _log.exception("the request %s failed", request.op)
            kind, message = error_to_wire(exc)
            return Response(id=request.id, error=kind, message=message)
