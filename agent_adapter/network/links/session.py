"""`ServerSession`: one connection of another process to a hub."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from agent_adapter.core.errors import NetworkError, ProtocolError
from agent_adapter.network.links.frames import (
    VERSION,
    Frame,
    Request,
    Response,
    Welcome,
    decode_client_frame,
    encode_frame,
)
from agent_adapter.network.links.operations import OPERATIONS
from agent_adapter.network.links.remote_participants import RemoteParticipants
from agent_adapter.network.links.session_hub import SessionHub
from agent_adapter.network.links.wire import error_to_wire

_log = logging.getLogger("agent_adapter.network")

_CONCURRENT = 64
_INSTANCES = 128
_ANSWERS = 128

Answer = asyncio.Task[Response]


class RecentAnswers:
    """The latest answers per process: a request repeated after a reconnection is executed once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, OrderedDict[int, Answer]] = OrderedDict()

    def of(self, instance: str) -> OrderedDict[int, Answer]:
        """The answers for one process by request id; the least recent process is forgotten."""
        kept = self._kept.setdefault(instance, OrderedDict())
        self._kept.move_to_end(instance)
        if len(self._kept) > _INSTANCES:
            self._kept.popitem(last=False)
        return kept

    async def close(self) -> None:
        """Cancel the requests that are still being answered."""
        pending = [task for kept in self._kept.values() for task in kept.values()]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        self._kept.clear()


class ServerSession:
    """Reads the requests of a connection, and sends answers, envelopes and turns."""

    def __init__(
        self,
        remote: RemoteParticipants,
        answers: RecentAnswers,
        connection: Any,
        instance: str,
        names: Sequence[str],
    ) -> None:
        self._hub = SessionHub(remote, self, instance, names)
        self._answers = answers
        self._connection = connection
        self._instance = instance
        self._free = asyncio.Semaphore(_CONCURRENT)
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Answer until the connection ends; running requests then continue."""
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        try:
            await self.push(Welcome(version=VERSION, hub_time=now))
            async for text in self._connection:
                frame = decode_client_frame(text)
                if not isinstance(frame, Request):
                    raise ProtocolError(f"a client sends requests, not a {frame.kind} frame")
                # Backpressure: beyond the limit requests wait in the socket, not in memory.
                await self._free.acquire()
                task = asyncio.create_task(self._answer(frame))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            self._hub.close()

    async def push(self, frame: Frame) -> None:
        """Send a frame; `ConnectionError` when the connection is lost."""
        from websockets.exceptions import ConnectionClosed

        # The parts of a long frame must not be mixed with another frame's.
        async with self._writing:
            try:
                for text in encode_frame(frame):
                    await self._connection.send(text)
            except ConnectionClosed as exc:
                raise ConnectionResetError(str(exc)) from None

    async def _answer(self, request: Request) -> None:
        try:
            kept = self._answers.of(self._instance)
            task = kept.get(request.id)
            if task is None:
                task = asyncio.create_task(self._perform(request))
                operation = OPERATIONS.get(request.op)
                if operation is None or not operation.repeatable:
                    kept[request.id] = task
                    if len(kept) > _ANSWERS:
                        kept.popitem(last=False)
            # Shielded: the request completes although the connection may be gone.
            response = await asyncio.shield(task)
            with contextlib.suppress(ConnectionError):
                await self.push(response)
        finally:
            self._free.release()

    async def _perform(self, request: Request) -> Response:
        try:
            return Response(
                id=request.id, result=await self._hub.perform(request.op, request.params)
            )
        except Exception as exc:
            if not isinstance(exc, NetworkError):
                _log.exception("the request %s failed", request.op)
            kind, message = error_to_wire(exc)
            return Response(id=request.id, error=kind, message=message)
