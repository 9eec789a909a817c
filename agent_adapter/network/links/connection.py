"""`Connection`: a client's connection to a hub; it reconnects when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from agent_adapter.core.errors import AccessDeniedError, AuthError, NetworkError, ProtocolError
from agent_adapter.network.links.frames import (
    FRAME_LIMIT,
    VERSION,
    Frame,
    Hello,
    Joiner,
    Notify,
    Request,
    Response,
    TurnStart,
    Welcome,
    decode_frame,
    encode_frame,
)
from agent_adapter.network.links.wire import error_from_wire

_log = logging.getLogger("agent_adapter.network")

_SLOWEST = 5.0


class Socket(Protocol):
    """An open WebSocket."""

    async def send(self, message: str) -> None:
        """Send one text."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        """The received texts until the connection is closed; `OSError` when it is lost."""
        ...


class Connection:
    """A connection that reconnects; unanswered requests are sent again, and executed once.

    `dial` opens a socket. `on_frame` receives the frames that the hub sends without a request.
    `on_return` is awaited after a reconnection, before any other request is sent. `on_end` is
    called with the reason when the connection has ended. Reconnecting is tried for `reconnect_for`
    seconds.
    """

    def __init__(
        self,
        dial: Callable[[], Awaitable[Socket]],
        *,
        on_frame: Callable[[Notify | TurnStart], None],
        on_return: Callable[[], Awaitable[None]],
        on_end: Callable[[str], None],
        reconnect_for: float,
    ) -> None:
        self._dial = dial
        self._on_frame = on_frame
        self._on_return = on_return
        self._on_end = on_end
        self._patience = reconnect_for
        self._instance = secrets.token_urlsafe(32)
        self._key_prefix = secrets.token_hex(8)
        self._ids = itertools.count(1)
        self._asked: dict[int, tuple[Request, asyncio.Future[Any]]] = {}
        self._socket: Socket | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._ended: str | None = None
        self._ready = asyncio.Event()
        self.hub_time = ""

    @property
    def is_up(self) -> bool:
        """Whether a request can be sent now, without reconnecting first."""
        return self._ready.is_set() and self._ended is None

    async def open(self) -> None:
        """Connect for the first time; the error has the reason of a failure."""
        socket, texts = await self._shake_hands()
        self._ready.set()
        self._keeper = asyncio.create_task(self._keep(socket, texts), name="hub-connection")

    def new_key(self) -> str:
        """An idempotency key that no other message has."""
        return f"{self._key_prefix}:{next(self._ids)}"

    async def close(self) -> None:
        """Close for good; requests that wait for an answer get a `NetworkError`."""
        keeper, self._keeper = self._keeper, None
        self._end("the connection to the hub is closed")
        if self._returning is not None:
            self._returning.cancel()
        if self._socket is not None:
            with contextlib.suppress(Exception):
                await self._socket.close()
        if keeper is not None and keeper is not asyncio.current_task():
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper

    async def request(self, op: str, params: dict[str, Any]) -> Any:
        """The result of an operation, or the error that the hub answers with."""
        if self._ended is not None:
            raise NetworkError(self._ended)
        request = Request(id=next(self._ids), op=op, params=params)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        texts = list(encode_frame(request))
        if len(texts) > 1:
            raise ProtocolError(
                f"the request {request.op!r} is too long: a frame to the hub has at most "
                f"{FRAME_LIMIT} bytes; keep large data elsewhere and send where it is"
            )
        self._asked[request.id] = (request, answer)
        try:
            # While disconnected the request waits, to be sent by `_return`. `register` is not held
            # back: `on_return` itself sends it before the connection is ready.
            if self._socket is not None and (self._ready.is_set() or request.op == "register"):
                with contextlib.suppress(ConnectionError, OSError):
                    await self._socket.send(texts[0])
            return await answer
        finally:
            self._asked.pop(request.id, None)

    async def _shake_hands(self) -> tuple[Socket, AsyncIterator[str | bytes]]:
        socket = await self._dial()
        texts = aiter(socket)
        try:
            frame = await self._welcome(socket, texts)
        except BaseException:
            with contextlib.suppress(Exception):
                await socket.close()
            raise
        self._socket, self.hub_time = socket, frame.hub_time
        return socket, texts

    async def _welcome(self, socket: Socket, texts: AsyncIterator[str | bytes]) -> Welcome:
        try:
            for text in encode_frame(Hello(version=VERSION, instance=self._instance)):
                await socket.send(text)
            first = await anext(texts, None)
        except OSError as exc:
            raise NetworkError(f"the hub closed the connection: {exc}") from exc
        if first is None:
            raise NetworkError("the hub closed the connection")
        frame = decode_frame(first)
        if isinstance(frame, Response):
            raise error_from_wire(frame.error, frame.message)
        if not isinstance(frame, Welcome) or frame.version != VERSION:
            raise ProtocolError(f"the other end does not speak version {VERSION} of the protocol")
        return frame

    async def _keep(self, socket: Socket, texts: AsyncIterator[str | bytes]) -> None:
        """Read until the connection is lost, reconnect, repeat; `_end` if reconnecting fails."""
        try:
            while True:
                why = await self._read(texts)
                self._ready.clear()
                self._socket = None
                if self._ended is not None:
                    return
                _log.info("the connection to the hub was cut (%s); reconnecting", why)
                back = await self._reconnect()
                if back is None:
                    return
                texts = back
        except asyncio.CancelledError:
            raise
        except Exception as exc:
            _log.exception("the connection to the hub failed")
            self._end(f"the connection to the hub failed: {exc}")

    async def _reconnect(self) -> AsyncIterator[str | bytes] | None:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._patience, 0.1
        while True:
            try:
                _, texts = await self._shake_hands()
            except (AuthError, AccessDeniedError, ProtocolError) as exc:
                # The hub has answered: another try would get the same answer.
                self._end(f"the hub does not take this client back: {exc}")
                return None
            except (NetworkError, OSError) as exc:
                if loop.time() + pause > until:
                    self._end(f"the hub could not be reached for {self._patience:.0f} s: {exc}")
                    return None
                await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311  # no secret
                pause = min(pause * 2, _SLOWEST)
                continue
            # In a task of its own: its answers are read by the caller, from `texts`.
            self._returning = asyncio.create_task(self._return())
            return texts

    async def _return(self) -> None:
        try:
            await self._on_return()
        except Exception as exc:
            self._end(f"the hub does not take this client back: {exc}")
            return
        self._ready.set()
        for request, answer in list(self._asked.values()):
            if self._socket is not None and not answer.done():
                with contextlib.suppress(ConnectionError, OSError):
                    for text in encode_frame(request):
                        await self._socket.send(text)

    async def _read(self, texts: AsyncIterator[str | bytes]) -> str:
        joiner = Joiner()
        try:
            async for text in texts:
                frame = joiner.joined(decode_frame(text))
                if frame is not None:
                    self._take(frame)
        except (OSError, ProtocolError) as exc:
            return str(exc) or type(exc).__name__
        return "the hub closed it"

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, (Notify, TurnStart)):
            self._on_frame(frame)
        elif isinstance(frame, Response):
            _, answer = self._asked.get(frame.id, (None, None))
            if answer is None or answer.done():
                return
            if frame.error:
                answer.set_exception(error_from_wire(frame.error, frame.message))
            else:
                answer.set_result(frame.result)

    def _end(self, why: str) -> None:
        if self._ended is not None:
            return
        self._ended = why
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(NetworkError(why))
        self._on_end(why)
