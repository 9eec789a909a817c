"""`serve`: lets other processes join a hub over WebSockets."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_adapter.core.errors import AuthError, NetworkError, ProtocolError
from agent_adapter.core.extras import check_installed
from agent_adapter.network.auth import Anybody, Authenticator
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.frames import (
    FRAME_LIMIT,
    VERSION,
    Hello,
    Response,
    decode_frame,
    encode_frame,
)
from agent_adapter.network.links.params import Params
from agent_adapter.network.links.seats import Seat
from agent_adapter.network.links.session import SessionOnWire
from agent_adapter.network.rules import Rule

if TYPE_CHECKING:
    import ssl

    from agent_adapter.network.hub.hub import Hub

__all__ = ["WebSocketServer", "serve"]

_log = logging.getLogger("agent_adapter.network")

_REMEMBERED = 128
_SHORTEST_INSTANCE = 32
_HELLO_SECONDS = 10.0


def serve(
    hub: Hub,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    authenticator: Authenticator | None = None,
    origins: Sequence[str] = (),
    ssl_context: ssl.SSLContext | None = None,
    trusted: Sequence[str] = (),
    grace: float = 30.0,
) -> WebSocketServer:
    """A server for `hub`, to be entered with `async with`; its `url` is for `WebSocketLink`.

    Args:
        hub: the hub that others are to join.
        host: where to listen. Beyond this machine an `authenticator` is required.
        port: 0 takes a free one.
        authenticator: who may join, and under which names; without it everybody on this machine.
        origins: web pages that may connect, as `https://hub.example`; others are turned away.
        ssl_context: makes it `wss://`.
        trusted: names, or globs over them, whose words are taken as one's own. What others say
            marks the channel as untrusted, as reading a foreign page would.
        grace: seconds in which a client whose wire was cut may come back to its rounds.

    Raises:
        AuthError: no authenticator, and the host is not this machine.
        MissingDependency: the package `websockets` is missing.
    """
    if authenticator is None and not _is_loopback(host):
        raise AuthError(
            f"serving on {host!r} without an authenticator would let anybody join as anybody; "
            "pass authenticator=TokenAuth({token: [names]}), or serve on 127.0.0.1"
        )
    return WebSocketServer(
        hub,
        host,
        port,
        authenticator=authenticator if authenticator is not None else Anybody(),
        origins=origins,
        ssl_context=ssl_context,
        trusted=trusted,
        grace=grace,
    )


class WebSocketServer:
    """A hub's door to other processes; see `serve`."""

    def __init__(
        self,
        hub: Hub,
        host: str,
        port: int,
        *,
        authenticator: Authenticator,
        origins: Sequence[str],
        ssl_context: ssl.SSLContext | None,
        trusted: Sequence[str],
        grace: float,
    ) -> None:
        self.hub = hub
        self.trusted = list(trusted)
        self._host = host
        self._port = port
        self._auth = authenticator
        self._origins = list(origins)
        self._ssl = ssl_context
        self._grace = grace
        self._server: Any = None
        self._seats: dict[str, Seat] = {}
        self._goodbyes: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: OrderedDict[str, OrderedDict[int, asyncio.Task[Response]]] = OrderedDict()
        self._names: WeakKeyDictionary[Any, Sequence[str]] = WeakKeyDictionary()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        if self._server is None:
            raise NetworkError("the server is not running; enter it with `async with`")
        return int(next(iter(self._server.sockets)).getsockname()[1])

    @property
    def url(self) -> str:
        """Where it listens, as `WebSocketLink` takes it."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'ws' if self._ssl is None else 'wss'}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen."""
        check_installed("ws", ["websockets"])
        from websockets.asyncio.server import serve as listen
        from websockets.typing import Origin

        if self._ssl is None and not _is_loopback(self._host):
            _log.warning(
                "the hub listens on %s without TLS: tokens and messages can be read on the way, "
                "unless something in front of it encrypts them",
                self._host,
            )
        self._server = await listen(
            self._talk,
            self._host,
            self._port,
            process_request=self._admit,
            origins=[None, *map(Origin, self._origins)],
            ssl=self._ssl,
            max_size=FRAME_LIMIT,
            server_header=None,
        )

    async def close(self) -> None:
        """Hang up; rounds that others were running are given back."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        for timer in self._goodbyes.values():
            timer.cancel()
        self._goodbyes.clear()
        for seat in list(self._seats.values()):
            await self.dismiss(seat)
        pending = [task for kept in self._answers.values() for task in kept.values()]
        for task in (*pending, *self._tasks):
            task.cancel()
        await asyncio.gather(*pending, *self._tasks, return_exceptions=True)
        self._answers.clear()

    async def __aenter__(self) -> WebSocketServer:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # --- seats: participants that live elsewhere ----------------------------------------------

    async def seat(self, session: SessionOnWire, passport: Passport, params: Params) -> Seat:
        """The seat of a participant: the one that its process left, or a new one."""
        found = next((s for s in self._seats.values() if s.passport.name == passport.name), None)
        if found is not None and found.instance == session.instance:
            return self._welcome_back(found)
        if found is not None:
            if found.outlet is not None:
                raise ProtocolError(
                    f"{passport.name} is registered and connected; disconnect it, or take another "
                    "name"
                )
            await self.dismiss(found)
        resume = Resume.from_dict(params.record("resume"))
        rule, known = params.maybe_record("rule"), self.hub.find_agent_id(passport.name)
        if known is not None:
            # What the hub has seen, and what it permits, is not for the participant to change.
            rule, seen = None, (await self.hub.get_resume(known)).observed
        else:
            seen = {}
        stamped = await self.hub.register_identity(
            passport,
            replace(resume, observed=seen),
            rule=None if rule is None else Rule.from_dict(rule),
        )
        made = Seat(self.hub, stamped, session.instance)
        self._seats[made.agent_id] = made
        return made

    def _welcome_back(self, seat: Seat) -> Seat:
        timer = self._goodbyes.pop(seat.agent_id, None)
        if timer is not None:
            timer.cancel()
        return seat

    def farewell(self, seat: Seat) -> None:
        """The wire to a participant was cut: it may come back for a while."""
        seat.outlet = None
        loop = asyncio.get_running_loop()
        self._goodbyes[seat.agent_id] = loop.call_later(self._grace, self._forget, seat)

    async def dismiss(self, seat: Seat) -> None:
        """A participant is gone: its rounds are given back to the hub."""
        timer = self._goodbyes.pop(seat.agent_id, None)
        if timer is not None:
            timer.cancel()
        if self._seats.get(seat.agent_id) is seat:
            del self._seats[seat.agent_id]
            await self.hub.detach(seat.agent_id)

    def _forget(self, seat: Seat) -> None:
        task = asyncio.get_running_loop().create_task(self.dismiss(seat))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- connections --------------------------------------------------------------------------

    async def _admit(self, connection: Any, request: Any) -> Any:
        """Turn a connection away before it is one, or note the names that it may go by."""
        if "?" in request.path:
            return connection.respond(
                HTTPStatus.BAD_REQUEST, "a query is no place for a token; send a header\n"
            )
        header = request.headers.get("Authorization")
        credential = None
        if header is not None:
            scheme, _, credential = header.partition(" ")
            if scheme.lower() != "bearer":
                return connection.respond(HTTPStatus.UNAUTHORIZED, "send a bearer token\n")
        try:
            self._names[connection] = await self._auth.names_for(credential)
        except AuthError as exc:
            _log.warning("a connection was turned away: %s", exc)
            return connection.respond(HTTPStatus.UNAUTHORIZED, "unknown token\n")
        return None

    async def _talk(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        names = self._names.pop(connection, ())
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = decode_frame(await connection.recv())
            if not isinstance(hello, Hello) or len(hello.instance) < _SHORTEST_INSTANCE:
                raise ProtocolError("the first frame is a hello with a secret of 32 characters")
            if hello.version != VERSION:
                raise ProtocolError(f"this hub speaks version {VERSION}, not {hello.version}")
        except (ConnectionClosed, TimeoutError):
            return
        except ProtocolError as exc:
            await _refuse(connection, exc)
            return
        session = SessionOnWire(self, connection, hello.instance, names)
        try:
            await session.run()
        except ConnectionClosed:
            pass
        except ProtocolError as exc:
            await _refuse(connection, exc)
        finally:
            session.gone()

    def answers_of(self, instance: str) -> OrderedDict[int, asyncio.Task[Response]]:
        """What a process has asked lately, so that a question asked again is answered once."""
        kept = self._answers.setdefault(instance, OrderedDict())
        self._answers.move_to_end(instance)
        while len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return kept


async def _refuse(connection: Any, error: ProtocolError) -> None:
    with contextlib.suppress(Exception):
        for text in encode_frame(Response(id=0, error=error.kind, message=str(error))):
            await connection.send(text)
        await connection.close(1002, error.kind)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
