"""A run as one timeline: what ran, what waits, what was refused; and the forms that stop it."""

from __future__ import annotations

import re

import pytest

import agent_adapter as aa
from agent_adapter.store import switch
from tests.console._shop import ShopConsole

pytestmark = pytest.mark.anyio


def items(text: str) -> list[tuple[str, str]]:
    """Status and tool of each item, in order."""
    found = re.findall(r'data-status="([^"]+)">\s*<header><h3>(.*?)</h3>', text, re.DOTALL)
    return [(status, re.sub("<[^>]+>", "", tool)) for status, tool in found]


def _ann() -> aa.ToolContext:
    return aa.ToolContext(run_id="run_1", principal="Ann")


async def _run(shop: ShopConsole) -> None:
    """One run of everything."""
    await shop.executor.run("look_up", {"order": "Größe-7"}, ctx=_ann())
    inbox = aa.Inbox(shop.store)
    paid = await shop.ask(order="P1", principal="Ann")
    await inbox.approve(paid, reviewer="os:bob", reason="checked")
    await shop.executor.resume(paid)
    denied = await shop.ask(order="D1", principal="Ann")
    await inbox.deny(denied, reviewer="os:kim", reason="too much")
    with pytest.raises(aa.ToolArgsInvalid):
        await shop.executor.run("refund", {"amount": "?"}, ctx=_ann())
    await shop.store.flush()
    lost = await shop.ask(order="L1", principal="Ann")
    await inbox.approve(lost, reviewer="os:bob")
    shop.fails = RuntimeError("the line went dead")
    with pytest.raises(aa.ToolError):
        await shop.executor.resume(lost)
    shop.fails = None
    await shop.ask(order="W1", principal="Ann")
    await shop.store.flush()


EVERYTHING = [
    ("ok", "look_up"),
    ("ok", "refund"),
    ("denied", "refund"),
    ("refused", "refund"),
    ("in-doubt", "refund"),
    ("waiting", "refund"),
]


async def test_everything_is_on_one_timeline(shop: ShopConsole) -> None:
    """Calls, denied, refused, unclear and waiting ones, in order; a waiting run says so."""
    await _run(shop)
    browser = await shop.browser()
    text = browser.get("/runs/run_1").text
    assert items(text) == EVERYTHING
    assert "waiting for 1 approval" in text and "1 in doubt" in text
    assert "denied by os:kim: too much" in " ".join(text.split())
    assert re.search(r'<td><span class="tag">1</span></td>', browser.get("/runs").text)


FILTERS = {
    "status=waiting": [5],
    "status=denied": [2],
    "status=in-doubt": [4],
    "status=refused": [3],
    "tool=LOOK": [0],
    "who=kim": [2],
    "who=ANN&tool=refund&status=ok": [1],
    "q=GRÖSSE": [0],
    "q=p1": [1],
    "q=w1": [5],
    "q=TOO+MUCH": [2],
    "q=nothing": [],
    "until=2001-01-01T00:00": [],
    "since=2001-01-01T00:00": [0, 1, 2, 3, 4, 5],
}


async def test_a_timeline_is_filtered(shop: ShopConsole) -> None:
    """By status, tool, person, text and time; parts are enough, whatever the case."""
    await _run(shop)
    browser = await shop.browser()
    for query, found in FILTERS.items():
        text = browser.get(f"/runs/run_1?{query}").text
        assert items(text) == [EVERYTHING[n] for n in found], query
        assert found or "Nothing fits this filter" in text


async def test_a_long_timeline_has_pages(shop: ShopConsole) -> None:
    """Each thing is on one of them."""
    for n in range(230):
        run = aa.ToolContext(run_id="run_1", call_id=f"c{n}")
        await shop.executor.run("look_up", {"order": f"A{n:03}"}, ctx=run)
    await shop.store.flush()
    browser, path, seen = await shop.browser(), "/runs/run_1", []
    while path:
        text = browser.get(path).text
        seen += re.findall(r"order A(\d{3})", text)
        following = re.search(r'rel="next" href="([^"]*)"', text)
        path = "/runs/run_1" + following[1].replace("&amp;", "&") if following else ""
    assert seen == [f"{n:03}" for n in range(230)]


async def _halted(shop: ShopConsole) -> str | None:
    """Why a write of the run may not begin."""
    return await shop.store.read(
        lambda tx: switch.halted(tx, run_id="run_1", root_run_id="run_1", write=True)
    )


async def test_a_run_is_cancelled_from_its_page(shop: ShopConsole) -> None:
    """With a reason and a name; what waits is withdrawn, and no write of it starts."""
    id = await shop.ask()
    browser = await shop.browser()
    assert browser.post("/runs/run_1/cancel", {}).status_code == 422
    assert (await shop.record(id)).state == "pending"
    assert browser.post("/runs/run_1/cancel", {"reason": "wrong customer"}).status_code == 303
    text = browser.get("/runs/run_1").text
    assert "cancelled" in text and items(text)[0] == ("withdrawn", "refund")
    assert "wrong customer" in (await _halted(shop) or "")
    assert browser.post("/runs/none/cancel", {"reason": "x"}).status_code == 404


async def test_all_writes_are_stopped_and_allowed(shop: ShopConsole) -> None:
    """By an admin, with a reason; both are said on the health page."""
    ada = await shop.browser("ada", "admin")
    assert ada.post("/writes/stop", {}).status_code == 422
    assert ada.post("/writes/stop", {"reason": "moving"}).status_code == 303
    assert "Writes are stopped: moving" in ada.get("/health").text
    assert "moving" in (await _halted(shop) or "")
    assert ada.post("/writes/allow", {}).status_code == 303
    assert "Writes are stopped" not in ada.get("/health").text
    kim = await shop.browser("kim", "approver")
    assert kim.post("/writes/stop", {"reason": "x"}).status_code == 403
