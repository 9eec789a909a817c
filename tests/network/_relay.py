"""A wire that a test can cut: it relays to a server, until it is told not to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Relay:
    """Passes bytes on in both directions."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        """Where a client connects instead of to the server."""
        return f"ws://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break every connection that there is, as a network does: without a word."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection."""
        if self.closed:
            writer.transport.abort()
            return
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(_pass_on(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.transport.abort()


@asynccontextmanager
async def relay(port: int) -> AsyncIterator[Relay]:
    """A relay to a server on this machine."""
    made = Relay(port)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await asyncio.gather(*made._tasks, return_exceptions=True)
