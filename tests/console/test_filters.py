"""Lists are searched as people remember names, and every page of them can be reached."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import Browser, ShopConsole
from tests.network._scene import TransitionGraph, scene

pytestmark = pytest.mark.anyio


def linked(text: str, what: str) -> list[str]:
    """The ids to whose pages a list links."""
    return re.findall(rf'href="/{what}/([^"?#]+)"', text)


def walk(browser: Browser, path: str, what: str, rel: str) -> list[list[str]]:
    """The ids on each page, from one to the next by its link."""
    pages = []
    base = path.partition("?")[0]
    while path:
        text = browser.get(path).text
        pages.append(list(dict.fromkeys(linked(text, what))))
        found = re.search(rf'rel="{rel}" href="([^"]*)"', text)
        path = base + html.unescape(found[1]) if found else ""
    return pages


def last_page(browser: Browser, path: str) -> str:
    """The path of the last page."""
    base = path.partition("?")[0]
    while found := re.search(r'rel="next" href="([^"]*)"', browser.get(path).text):
        path = base + html.unescape(found[1])
    return path


async def test_seventy_channels_are_reached_and_found(store: SqliteStore) -> None:
    """D6: page by page there and back, and by a part of a name in any case."""
    async with scene(store) as at:
        for name in ("ana", "bob", "Zoë-Ünal"):
            await at.person(name)
        ids = []
        for n in range(70):
            other = "Zoë-Ünal" if n == 3 else "bob"
            at.clock.pass_by(1)
            graph = TransitionGraph.round_robin(at.names("ana", other))
            ids.append((await at.open("ana", [other], graph)).channel_id)
        browser = await ShopConsole(store).browser("ana")
        pages = walk(browser, "/channels", "channels", "next")
        assert [each for page in pages for each in page] == ids[::-1]
        back = walk(browser, last_page(browser, "/channels"), "channels", "prev")
        assert back == pages[::-1]
        for query in ("ünal", "ZOË-Ü", ids[3][4:20].upper()):
            text = browser.get("/channels", params={"q": query}).text
            assert linked(text, "channels") == [ids[3]], query
        assert "No channel fits" in browser.get("/channels?q=nobody").text
        assert len(linked(browser.get("/channels?mine=1").text, "channels")) == 50
        bob = await ShopConsole(store).browser("bob")
        assert "No channel fits" in bob.get("/channels?mine=1").text


async def _runs(shop: ShopConsole) -> None:
    for n in range(120):
        ctx = aa.ToolContext(run_id=f"run_{n:03}", principal="Ann Ünal" if n == 7 else "bob")
        await shop.executor.run("look_up", {"order": "A"}, ctx=ctx)
    await shop.ask(run="Refund-Of-March", principal="zoe")
    await shop.doubt("run_doubt")
    await shop.store.flush()


@pytest.mark.parametrize("of", ["file", "memory"])
async def test_runs_are_found(tmp_path: Any, of: str) -> None:
    """D6: by parts of names in any case, by status and time, on whatever page they are."""
    store: Any = SqliteStore(tmp_path / "s.db") if of == "file" else MemoryStore()
    shop = ShopConsole(store)
    await _runs(shop)
    browser = await shop.browser()
    everything = [f"run_{n:03}" for n in range(120)] + ["Refund-Of-March", "run_doubt"]
    pages = walk(browser, "/runs", "runs", "next")
    assert sorted(each for page in pages for each in page) == sorted(everything)
    assert walk(browser, last_page(browser, "/runs"), "runs", "prev") == pages[::-1]
    started = (await store.read(lambda tx: tx.get("runs", "run_007")))["started_at"]
    cases = {
        "run=N_00": [f"run_{n:03}" for n in range(9, -1, -1)],
        "run=of-mar": ["Refund-Of-March"],
        "tool=REF": ["run_doubt", "Refund-Of-March"],
        "who=ünAL": ["run_007"],
        "who=ann": ["run_doubt", "run_007"],
        "status=waiting": ["Refund-Of-March"],
        "status=in-doubt": ["run_doubt"],
        "status=unknown": ["run_doubt"],
        "ending=unknown": ["run_doubt"],
        "tool=look&who=ünal": ["run_007"],
        "tool=LOOK&status=ok&run=117": ["run_117"],
        "status=waiting&tool=fund": ["Refund-Of-March"],
        "status=waiting&tool=look": [],
        "status=running": [],
        f"until={_iso(started + 0.000001)}&run=run_00": [f"run_{n:03}" for n in range(7, -1, -1)],
        f"since={_iso(started + 3600)}": [],
    }
    for query, wanted in cases.items():
        answer = browser.get(f"/runs?{query}")
        assert linked(answer.text, "runs") == wanted, query
    assert "No run fits" in browser.get("/runs?run=nothing").text
    assert browser.get("/runs?run=run_007").headers["location"] == "/runs/run_007"
    await store.aclose()


def _iso(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "")


async def test_a_filter_stays_from_page_to_page(shop: ShopConsole) -> None:
    """The next page is of what was looked for."""
    await _runs(shop)
    browser = await shop.browser()
    pages = walk(browser, "/runs?tool=LOOK", "runs", "next")
    assert [len(page) for page in pages] == [25, 25, 25, 25, 20]
    assert {each for page in pages for each in page} == {f"run_{n:03}" for n in range(120)}


async def test_tools_and_writes_in_doubt_are_searched(shop: ShopConsole) -> None:
    """By a part of a name, in any case."""
    key = await shop.doubt()
    browser = await shop.browser()
    assert linked(browser.get("/tools?q=LOOK").text, "tools") == ["look_up"]
    assert "No tool fits" in browser.get("/tools?q=nothing").text
    for query, found in (("REF", True), ("ANN", True), (key[5:20], True), ("nothing", False)):
        assert (key in browser.get(f"/in-doubt?q={query}").text) is found, query


async def test_a_query_for_a_time_that_is_none_is_refused(shop: ShopConsole) -> None:
    """With the parameter's name."""
    answer = (await shop.browser()).get("/runs?since=soon")
    assert answer.status_code == 422 and "since" in answer.text
