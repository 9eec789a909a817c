"""Open pages learn what has changed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_adapter.console import event_streams, feed
from agent_adapter.store import access
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

    async def receive(self) -> MutableMapping[str, Any]:
        """What the server hears of the browser: nothing until it is gone."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
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
async def listening(shop: ShopConsole, browser: Browser, query: str = "") -> AsyncIterator[Stream]:
    """A connection of a signed-in browser to a stream."""
    cookie = f"agent_adapter_session={browser.client.cookies['agent_adapter_session']}"
    headers = [(b"host", b"localhost"), (b"cookie", cookie.encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "raw_path": b"/events",
        "root_path": "",
        "query_string": query.encode(),
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
    monkeypatch.setattr(feed, "POLL_SECONDS", 0.01)


async def test_a_new_request_arrives_and_a_decided_one_leaves(shop: ShopConsole) -> None:
    """The ids of both, and how many wait."""
    first = await shop.ask(run="r1")
    browser = await shop.browser()
    async with listening(shop, browser) as stream:
        start = await stream.next()
        assert (start["inbox"]["ids"], start["counts"]["waiting"]) == ([first], 1)
        second = await shop.ask(run="r2")
        news = await stream.next()
        assert news["inbox"] == {"added": [second], "removed": [], "total": 2}
        browser.decide(first, "denied")
        assert (await stream.next())["inbox"] == {"added": [], "removed": [first], "total": 1}
        assert stream.headers[b"content-type"].startswith(b"text/event-stream")


async def test_a_channel_says_when_something_was_said(store: SqliteStore) -> None:
    """Its number of entries, its state, whose turn it is, and that it is mine."""
    async with scene(store) as at:
        ana, _ = await at.person("ana"), await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        id = (await at.open("ana", ["bob"], graph)).channel_id
        shop = ShopConsole(store)
        async with listening(shop, await shop.browser("bob"), f"channel={id}") as stream:
            start = await stream.next()
            assert start["counts"]["turns"] == 0
            await ana.send(id, "hi")
            then = await stream.next()
            assert then["channels"][id]["entries"] > start["channels"][id]["entries"]
            assert then["channels"][id]["expected"] == at.id("bob")
            assert then["counts"]["turns"] == 1


async def test_a_run_says_when_something_happened(shop: ShopConsole) -> None:
    """As do the counts: a write in doubt is counted at once."""
    await shop.ask(run="r1")
    async with listening(shop, await shop.browser(), "run=r1") as stream:
        start = await stream.next()
        assert start["runs"]["r1"] > 0 and start["counts"]["doubt"] == 0
        await shop.doubt("r2")
        while (then := await stream.next()).get("counts", {}).get("doubt") != 1:
            assert "r1" not in then.get("runs", {})


@pytest.mark.parametrize("how", ["revoked", "signed out", "expired"])
async def test_a_session_that_ends_ends_its_stream(shop: ShopConsole, how: str) -> None:
    """D5: the page is told so at once, and why."""
    browser = await shop.browser("kim")
    async with listening(shop, browser) as stream:
        await stream.next()
        if how == "revoked":
            await shop.store.write(lambda tx: access.revoke_token(tx, "kim"))
        elif how == "signed out":
            browser.post("/sign-out", {})
        else:
            await shop.store.write(lambda tx: tx.update("sessions", {}, {"expires_at": 1.0}))
        assert await stream.next() == {"reason": "signed-out"}
    assert browser.get("/events/check").status_code == 303


async def test_a_stream_keeps_no_session_alive(shop: ShopConsole) -> None:
    """An open page is not activity."""
    browser = await shop.browser()
    await shop.store.write(lambda tx: tx.update("sessions", {}, {"expires_at": tx.now + 60}))
    sessions = await shop.store.read(lambda tx: tx.select("sessions"))
    async with listening(shop, browser) as stream:
        await stream.next()
        await shop.ask()
        await stream.next()
    browser.get("/events/check")
    await shop.store.flush()
    assert await shop.store.read(lambda tx: tx.select("sessions")) == sessions


async def test_a_stream_follows_only_what_its_person_may_see(shop: ShopConsole) -> None:
    """And not any number of things."""
    browser = await shop.browser()
    for query, status in (
        ("run=none", 404),
        ("channel=none", 404),
        ("&".join(f"run={n}" for n in range(33)), 422),
    ):
        assert browser.get(f"/events?{query}").status_code == status


async def test_a_person_may_keep_a_few_browsers_open(shop: ShopConsole) -> None:
    """Not any number of them; one that is closed makes room."""
    browser = await shop.browser()
    opened = [listening(shop, browser) for _ in range(event_streams.MAX_STREAMS)]
    for each in opened:
        await (await each.__aenter__()).next()
    assert browser.get("/events").status_code == 429
    for each in opened:
        await each.__aexit__(None, None, None)
    async with listening(shop, browser) as stream:
        await stream.next()
        assert stream.status == 200


async def test_the_store_is_read_once_for_all_streams(
    shop: ShopConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty open browsers cost as many looks at the store as one."""
    looks, count = [0], feed._news_of

    def counted(*args: Any) -> Any:
        looks[0] += 1
        return count(*args)

    monkeypatch.setattr(feed, "_news_of", counted)
    browsers = [await shop.browser(f"p{n}") for n in range(10)]
    async with contextlib.AsyncExitStack() as stack:
        streams = []
        for n in range(50):
            streams.append(await stack.enter_async_context(listening(shop, browsers[n % 10])))
            await streams[-1].next()
        before = looks[0]
        await shop.ask()
        for stream in streams:
            assert (await stream.next())["counts"]["waiting"] == 1
        assert looks[0] - before < 50
