"""Open pages learn what has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_adapter.console import event_streams
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import Browser, ShopConsole
from tests.network._scene import TransitionGraph, scene

pytestmark = pytest.mark.anyio


class Stream:
    """The events of one connection, as they come."""

    def __init__(self) -> None:
        self._text = ""
        self._arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self.headers: dict[bytes, bytes] = {}
        self.status = 0

    async def receive(self) -> dict[str, Any]:
        """What the server hears of the browser: nothing until it is gone."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """What the browser hears of the server."""
        if message["type"] == "http.response.start":
            self.headers, self.status = dict(message["headers"]), message["status"]
        self._text += message.get("body", b"").decode().replace("\r\n", "\n")
        self._arrived.set()

    async def next(self) -> dict[str, Any]:
        """The data of the next event."""
        async with asyncio.timeout(60):
            while "\n\n" not in self._text:
                self._arrived.clear()
                await self._arrived.wait()
        event, _, self._text = self._text.partition("\n\n")
        lines = dict(line.partition(": ")[::2] for line in event.splitlines())
        if "data" not in lines:
            return await self.next()
        data: dict[str, Any] = json.loads(lines["data"])
        return data


@asynccontextmanager
async def listening(shop: ShopConsole, browser: Browser, path: str) -> AsyncIterator[Stream]:
    """A connection of a signed-in browser to a stream."""
    cookie = f"agent_adapter_session={browser.client.cookies['agent_adapter_session']}"
    headers = [(b"host", b"localhost"), (b"cookie", cookie.encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
    }
    stream = Stream()
    serving = asyncio.create_task(shop.app(scope, stream.receive, stream.send))
    try:
        yield stream
    finally:
        stream.gone.set()
        await serving


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often."""
    monkeypatch.setattr(event_streams, "POLL_SECONDS", 0.01)


async def test_a_new_request_arrives_and_a_decided_one_leaves(shop: ShopConsole) -> None:
    """The ids of both, and how many wait."""
    first = await shop.ask(run="r1")
    browser = await shop.browser()
    async with listening(shop, browser, "/events/approvals") as stream:
        start = await stream.next()
        assert (start["ids"], start["total"]) == ([first], 1)
        second = await shop.ask(run="r2")
        assert await stream.next() == {"added": [second], "removed": [], "total": 2}
        browser.decide(first, "denied")
        assert await stream.next() == {"added": [], "removed": [first], "total": 1}
        assert stream.headers[b"content-type"].startswith(b"text/event-stream")


async def test_a_channel_says_when_something_was_said(store: SqliteStore) -> None:
    """Its number of entries, its state, and whose turn it is."""
    async with scene(store) as at:
        ana, _ = await at.person("ana"), await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        channel = await at.open("ana", ["bob"], graph)
        shop = ShopConsole(store)
        path = f"/events/channels/{channel.channel_id}"
        async with listening(shop, await shop.browser(), path) as stream:
            start = await stream.next()
            await ana.send(channel.channel_id, "hi")
            then = await stream.next()
            assert then["entries"] > start["entries"]
            assert then["expected"] == at.id("bob")


async def test_a_person_may_keep_a_few_pages_open(shop: ShopConsole) -> None:
    """Not any number of them; one that is closed makes room."""
    browser = await shop.browser()
    async with asyncio.TaskGroup():
        opened = [
            listening(shop, browser, "/events/approvals") for _ in range(event_streams.MAX_STREAMS)
        ]
        for each in opened:
            await (await each.__aenter__()).next()
        assert browser.get("/events/approvals").status_code == 429
        for each in opened:
            await each.__aexit__(None, None, None)
    async with listening(shop, browser, "/events/approvals") as stream:
        await stream.next()
        assert stream.status == 200
