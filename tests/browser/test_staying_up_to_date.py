"""Open pages stay up to date, and say so where they cannot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Browser, Page, expect

import agent_adapter as aa
from agent_adapter.store import access

from ._hands import press
from ._site import SECONDS, Site, serving

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def test_six_open_tabs_still_decide(site: Site, page: Page) -> None:
    """D4: the pages of a browser share one stream, so that connections are left for a decision."""
    tabs = [page]
    for _ in range(5):
        tab = await page.context.new_page()
        tab.set_default_timeout(SECONDS * 1000)
        await tab.goto("/approvals")
        tabs.append(tab)
    record = await site.ask(order_id="six")
    for tab in tabs:
        await expect(tab.locator(f"#{record.id}")).to_contain_text("six")
    card = tabs[3].locator(f"#{record.id}")
    await press(card.get_by_role("button", name="Approve"))
    assert (await site.decided(record.id)).state == "approved"
    for tab in tabs:
        await expect(tab.locator("#total")).to_have_text("0 pending")


async def test_counts_are_in_the_title_and_the_navigation(site: Site, page: Page) -> None:
    """On every page, by themselves."""
    await page.goto("/tools")
    count = page.locator("[data-count=waiting]")
    await expect(count).to_be_hidden()
    await site.ask(order_id="counted")
    await expect(count).to_have_text("1")
    await expect(page).to_have_title(re.compile(r"^\(1\) Tools"))
    await site.clear()
    await expect(count).to_be_hidden()
    await expect(page).to_have_title(re.compile("^Tools"))


async def test_a_revoked_token_is_said_on_the_page(site: Site) -> None:
    """D5: at once, with the way back; a decision on it is refused and says so."""
    record = await site.ask(order_id="late")
    secret = access.new_secret()
    await site.store.write(lambda tx: access.create_token(tx, "rae", "approver", secret))
    site.tokens["rae"] = secret
    async with site.signed_in("rae") as page:
        card = page.locator(f"#{record.id}")
        await expect(card).to_contain_text("late")
        await site.store.write(lambda tx: access.revoke_token(tx, "rae"))
        banner = page.locator("#connection")
        await expect(banner).to_contain_text("You are signed out")
        await expect(banner.get_by_role("link", name="Sign in again")).to_be_visible()
        await press(card.get_by_role("button", name="Approve"))
        await expect(card.get_by_role("alert")).to_contain_text("signed out; nothing was changed")
    assert (await site.record(record.id)).state == "pending"


async def test_a_server_that_restarts_is_said_and_healed(browser: Browser, tmp_path: Path) -> None:
    """D5: a decision while it is down is said to be lost; afterwards the page goes on by itself."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    store, secret = aa.open_store(url), access.new_secret()
    await store.write(lambda tx: access.create_token(tx, "kim", "approver", secret))
    async with serving(url) as where:
        site = Site(url=where, store_url=url, store=store, browser=browser, tokens={"kim": secret})
        opened = site.signed_in("kim", lenient=True)
        page = await opened.__aenter__()
        record = await site.ask(order_id="down")
        card = page.locator(f"#{record.id}")
        await expect(card.get_by_role("button", name="Approve")).to_be_enabled()
    banner = page.locator("#connection")
    await expect(banner).to_contain_text("connection to the console is lost")
    await press(card.get_by_role("button", name="Approve"))
    await expect(card.get_by_role("alert")).to_contain_text("No answer from the console")
    assert (await site.record(record.id)).state == "pending"
    async with serving(url, port=int(where.rstrip("/").rpartition(":")[2])):
        await expect(banner).to_be_hidden()
        other = await site.ask(order_id="up again")
        await expect(page.locator(f"#{other.id}")).to_contain_text("up again")
        await press(card.get_by_role("button", name="Approve"))
        assert (await site.decided(record.id)).state == "approved"
        await opened.__aexit__(None, None, None)
    await store.aclose()
