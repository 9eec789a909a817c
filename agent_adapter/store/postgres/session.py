"""The thread that shows that this process lives, and tells it what others have changed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Collection, Iterable

import psycopg

from agent_adapter.store.postgres.connection import Connection, said
from agent_adapter.store.postgres.owners import BEAT_SECONDS, PostgresOwner

_AGAIN_SECONDS = 0.2
_JOIN_SECONDS = 5.0
_TOLD_SECONDS = 0.01

_log = logging.getLogger("agent_adapter.store")

_Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]", frozenset[str]]


class ProcessSession:
    """One connection that is kept open: the owner's lock, its row, and notifications.

    A process that may not write the tables only listens. `channel` is where the processes of one
    schema tell each other which tables they have changed.
    """

    def __init__(
        self,
        *,
        name: str,
        connect: Callable[[], Connection],
        channel: str,
        owner: PostgresOwner | None,
        first: Connection,
    ) -> None:
        self._name = name
        self._connect = connect
        self._channel = channel
        self._owner = owner
        self._connection: Connection | None = first
        self._changed: set[str] = set()
        self._waiters: set[_Waiter] = set()
        self._change = 0
        self._last: dict[str, int] = {}
        self._last_unknown = 0
        self._lock = threading.RLock()
        self._stopped = False
        self._wakes, self._woken_by = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._begin(first)
        self._thread = threading.Thread(
            target=self._work, name="agent-adapter-session", daemon=True
        )
        self._thread.start()

    @property
    def change(self) -> int:
        """How many changes were told so far."""
        return self._change

    async def changed(self, tables: Collection[str], seconds: float, since: int) -> bool:
        """Return when a table has changed since that change; `False` after so many seconds."""
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future(), frozenset(tables))
        with self._lock:
            if any(self._last.get(table, self._last_unknown) > since for table in tables):
                return True
            self._waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter[1]
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiters.discard(waiter)
        return True

    def tell(self, tables: Iterable[str]) -> None:
        """This process has changed the tables: wake who waits, here and elsewhere."""
        with self._lock:
            self._changed.update(tables)
        self._wake_up()
        self._call(tables)

    def stop(self) -> None:
        """Tell what is still to be told, leave, and end the thread."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
        self._wake_up()
        if self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)
        if not self._thread.is_alive():
            os.close(self._wakes)
            os.close(self._woken_by)

    def gates(self) -> list[threading.RLock]:
        """Locks that are held while the lists of waiters and changes are changed."""
        return [self._lock]

    def abandoned(self) -> list[object]:
        """What a forked child must keep and never touch."""
        return [self._connection, self._thread, self._waiters]

    def _wake_up(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._woken_by, b"x")

    def _begin(self, connection: Connection) -> None:
        # What is written here is renewed all the time: nobody waits for the disk.
        connection.execute("SET synchronous_commit = off")
        connection.execute(f'LISTEN "{self._channel}"'.encode())
        if self._owner is not None:
            self._owner.announce(connection)

    def _work(self) -> None:
        while not self._stopped:
            try:
                self._serve()
            except (psycopg.Error, OSError, ValueError) as error:
                if not self._stopped:
                    _log.info("%s: the session is made again: %s", self._name, said(error))
                self._drop()
                time.sleep(_AGAIN_SECONDS)
        try:
            self._leave()
        except psycopg.Error:
            self._drop()
            # Once more on another connection, so that nobody waits for a process that has ended.
            with contextlib.suppress(psycopg.Error):
                self._leave()
        self._drop()

    def _leave(self) -> None:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        self._send(connection)
        if self._owner is not None:
            self._owner.leave(connection)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _serve(self) -> None:
        """Beat, tell and listen until the end or an error."""
        connection = self._connection
        if connection is None:
            connection = self._connect()
            self._connection = connection
            self._begin(connection)
            # What was told meanwhile was missed.
            self._call(None)
        beaten_at = time.monotonic()
        while not self._stopped:
            left = max(0.0, beaten_at + BEAT_SECONDS - time.monotonic())
            ready, _, _ = select.select([connection.fileno(), self._wakes], [], [], left)
            if self._wakes in ready:
                time.sleep(_TOLD_SECONDS)  # several changes are told at once
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wakes, 4096)
                self._send(connection)
            if time.monotonic() - beaten_at >= BEAT_SECONDS:
                beaten_at = time.monotonic()
                if self._owner is not None:
                    self._owner.beat(connection)
                else:
                    connection.execute("SELECT 1")
            own = connection.info.backend_pid
            for notice in connection.notifies(timeout=0):
                if notice.pid != own:
                    self._call(notice.payload.split(","))

    def _send(self, connection: Connection) -> None:
        with self._lock:
            changed, self._changed = self._changed, set()
        if changed:
            payload = ",".join(sorted(changed))
            try:
                connection.execute("SELECT pg_notify($1, $2)", [self._channel, payload])
            except psycopg.Error:
                with self._lock:
                    self._changed |= changed
                raise

    def _call(self, tables: Iterable[str] | None) -> None:
        """Wake whoever waits for one of the tables; for any where it is not known which."""
        named = None if tables is None else frozenset(tables)
        with self._lock:
            self._change += 1
            if named is None:
                self._last_unknown = self._change
                self._last.clear()
            else:
                self._last.update(dict.fromkeys(named, self._change))
            woken = [one for one in self._waiters if named is None or named & one[2]]
        for loop, future, _ in woken:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_done, future)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
