"""A slow network and a phone: nothing hangs, and everything is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Page, Route, expect

from ._hands import press
from ._site import Site

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 667}, "has_touch": True}
SLOW = {"offline": False, "latency": 300, "downloadThroughput": 50_000, "uploadThroughput": 20_000}


async def test_a_slow_network_is_waited_for(site: Site, page: Page) -> None:
    """A decision on its way says so when it is asked for again; news still arrive by themselves."""
    record = await site.ask(order_id="slow")
    line = await page.context.new_cdp_session(page)
    await line.send("Network.emulateNetworkConditions", SLOW)
    arrives = asyncio.Event()

    async def later(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    await page.route("**/decide", later)
    await page.goto("/approvals")
    card = page.locator(f"#{record.id}")
    await press(card.get_by_role("button", name="Approve"))
    await page.keyboard.press("a")
    await expect(card.get_by_role("alert")).to_contain_text("on its way to the console")
    arrives.set()
    await expect(card).to_contain_text("approved by you")
    other = await site.ask(order_id="after")
    await expect(page.locator(f"#{other.id}")).to_contain_text("after")


async def test_a_phone_decides_one_after_the_other(site: Site) -> None:
    """By taps alone: the list, a record's page, a decision, and a swipe to the next request."""
    first, second = [await site.ask(order_id=f"phone-{n}") for n in range(2)]
    async with site.signed_in(**PHONE) as page:
        await page.locator(f"#{first.id} [data-open]").tap()
        await page.wait_for_url(f"**/approvals/{first.id}")
        await press(page.get_by_role("button", name="Deny"), tap=True)
        await expect(page.locator("[data-state]")).to_have_text("denied")
        await page.goto(f"/approvals/{second.id}")
        third = await site.ask(order_id="phone-2")
        await page.reload()
        await _swipe(page, 320, 60)
        await page.wait_for_url(f"**/approvals/{third.id}")
        await press(page.get_by_role("button", name="Approve refund"), tap=True)
        assert (await site.decided(third.id)).state == "approved"
    assert (await site.record(second.id)).state == "pending"


async def _swipe(page: Page, start: int, end: int) -> None:
    """Draw a finger over the page, below everything that scrolls by itself."""
    finger = await page.context.new_cdp_session(page)
    at = await page.evaluate("document.querySelector('.tool').getBoundingClientRect().y + 8")
    for kind, x in (("touchStart", start), ("touchMove", (start + end) // 2), ("touchMove", end)):
        points = [{"x": x, "y": at}]
        await finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    await finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
