"""Approvals in a real browser."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Page, expect

from ._hands import press
from ._site import Site

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def test_approve(site: Site, page: Page) -> None:
    """What is approved in the page is approved, by the person who is signed in."""
    record = await site.ask(order_id="approve-me")
    card = page.locator(f"#{record.id}")
    await expect(card).to_contain_text("approve-me")
    await press(card.get_by_role("button", name="Approve"))
    decided = await site.decided(record.id)
    assert (decided.state, decided.reviewer) == ("approved", "token:kim")
    await expect(card).to_contain_text("approved")
    assert await card.get_by_role("button").count() == 0


async def test_deny_with_a_reason(site: Site, page: Page) -> None:
    """A denial keeps the reason that was typed."""
    record = await site.ask(order_id="deny-me")
    await page.goto(f"/approvals/{record.id}")
    await page.get_by_label("Reason", exact=True).fill("wrong customer")
    await press(page.get_by_role("button", name="Deny"))
    decided = await site.decided(record.id)
    await expect(page.locator(f"#{record.id}")).to_contain_text("denied by you")
    assert (decided.state, decided.reason) == ("denied", "wrong customer")


async def test_edit_in_a_form(site: Site, page: Page) -> None:
    """Simple values are edited in fields of their own; the rest stays as it was."""
    record = await site.ask(order_id="edit-me", amount=50)
    await page.goto(f"/approvals/{record.id}")
    await page.get_by_label("amount").fill("12.5")
    await page.get_by_label("urgent").select_option("true")
    await press(page.get_by_role("button", name="Approve as edited"))
    decided = await site.decided(record.id)
    assert decided.edited == {"order_id": "edit-me", "amount": 12.5, "urgent": True}
    await expect(page.get_by_label("What the edit changes")).to_contain_text("12.5")


async def test_an_edit_that_the_schema_refuses(site: Site, page: Page) -> None:
    """The form comes back with the reason and with what was typed; nothing is decided."""
    record = await site.ask(order_id="edit-me")
    await page.goto(f"/approvals/{record.id}")
    await page.get_by_label("amount").fill("a lot")
    await press(page.get_by_role("button", name="Approve as edited"))
    await expect(page.get_by_role("alert")).to_contain_text("amount")
    await expect(page.get_by_label("amount")).to_have_value("a lot")
    assert (await site.record(record.id)).state == "pending"


async def test_a_new_request_arrives_by_itself(site: Site, page: Page) -> None:
    """It appears in the open page and is announced; one that is decided elsewhere says so."""
    await expect(page.get_by_text("No pending requests.")).to_be_visible()
    record = await site.ask(order_id="just-now")
    card = page.locator(f"#{record.id}")
    await expect(card).to_contain_text("just-now")
    await expect(page.locator("#live")).to_contain_text("New request")
    await expect(page.locator("#total")).to_have_text("1 pending")
    await site.clear()
    await expect(card).to_contain_text("denied by test")
    await expect(page.locator("#total")).to_have_text("0 pending")


async def test_two_people_race_for_one_record(site: Site, page: Page) -> None:
    """One word counts, whoever is first; the other is told so."""
    record = await site.ask(order_id="raced")
    async with site.signed_in("lee") as other:
        for each in (page, other):
            await each.goto(f"/approvals/{record.id}")
        await asyncio.gather(
            press(page.get_by_role("button", name="Approve refund")),
            press(other.get_by_role("button", name="Deny")),
        )
        refused = []
        for each in (page, other):
            said = each.locator("[data-problem], [data-gone]")
            await expect(said.first).to_be_visible()
            refused.append(await each.locator("[data-problem]").count())
    decided = await site.record(record.id)
    winner = {"approved": ("token:kim", [0, 1]), "denied": ("token:lee", [1, 0])}[decided.state]
    assert (decided.reviewer, refused) == winner


async def test_the_list_says_why_a_word_does_not_count(site: Site, page: Page) -> None:
    """Without its live part, too, the list learns that somebody else was first."""
    await page.route(
        "**/static/live.js", lambda route: route.fulfill(content_type="text/javascript")
    )
    record = await site.ask(order_id="late")
    await page.goto("/approvals")
    await site.clear()
    card = page.locator(f"#{record.id}")
    await press(card.get_by_role("button", name="Approve"))
    await expect(card.get_by_role("alert")).to_contain_text("denied")


async def test_a_page_that_shows_what_has_changed_decides_nothing(site: Site, page: Page) -> None:
    """A record that somebody else has decided meanwhile is refused, with the reason."""
    record = await site.ask(order_id="stale")
    await page.goto(f"/approvals/{record.id}")
    await site.clear()
    await press(page.get_by_role("button", name="Approve refund"))
    await expect(page.get_by_role("alert")).to_contain_text("denied")
    assert (await site.record(record.id)).reviewer == "test"


async def test_keyboard_only(site: Site, page: Page) -> None:
    """Keys j and k move, a approves, d denies, e opens the form; Tab reaches all."""
    first, second, third = [await site.ask(order_id=f"key-{n}") for n in range(3)]
    await expect(page.locator(f"#{third.id}").get_by_role("button", name="Deny")).to_be_enabled()
    for key in ("j", "j", "k", "d"):
        await page.keyboard.press(key)
    assert (await site.decided(first.id)).state == "denied"
    await expect(page.locator(f"#{first.id}")).to_contain_text("denied")
    await page.locator(f"#{second.id}").focus()
    await page.keyboard.press("a")
    assert (await site.decided(second.id)).state == "approved"
    await expect(page.locator(f"#{second.id}")).to_contain_text("approved")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await page.wait_for_url(f"**/approvals/{third.id}#edit")
    await page.get_by_label("order_id").focus()
    for key in ("Tab", "9", "Tab", "Tab", "Tab", "Enter"):
        await page.keyboard.press(key)
    assert (await site.decided(third.id)).edited == third.arguments | {"amount": 9}


async def test_keys_typed_into_a_field_decide_nothing(site: Site, page: Page) -> None:
    """A reason may have the letters a, d and e."""
    record = await site.ask(order_id="typed")
    field = page.locator(f"#{record.id}").get_by_label("Reason")
    await field.press_sequentially("a deed")
    await expect(field).to_have_value("a deed")
    assert (await site.record(record.id)).state == "pending"


async def test_without_javascript(site: Site) -> None:
    """Forms alone are enough."""
    record = await site.ask(order_id="plain")
    async with site.signed_in(java_script_enabled=False) as page:
        card = page.locator(f"#{record.id}")
        await card.get_by_role("button", name="Approve").click()
        await expect(page.locator("[data-state]")).to_have_text("approved")
        await page.get_by_role("link", name="All requests").click()
        await expect(page.get_by_text("No pending requests.")).to_be_visible()
    assert (await site.record(record.id)).state == "approved"


async def test_a_viewer_only_looks(site: Site) -> None:
    """Whoever may not decide has no buttons to decide with."""
    record = await site.ask(order_id="seen")
    async with site.signed_in("vic") as page:
        await expect(page.locator(f"#{record.id}")).to_contain_text("seen")
        assert await page.get_by_role("button", name="Approve").count() == 0
        await page.goto(f"/approvals/{record.id}")
        assert await page.get_by_role("button", name="Approve").count() == 0


async def test_the_same_call_of_several_runs_is_decided_at_once(site: Site, page: Page) -> None:
    """One word for calls of one tool with the same arguments; others are left alone."""
    alike = [await site.ask(order_id="alike") for _ in range(2)]
    other = await site.ask(order_id="other")
    await page.goto("/approvals")
    await page.get_by_role("button", name="Preview the decision on these").click()
    await expect(page.get_by_role("heading", name="nothing is decided yet")).to_be_visible()
    await press(page.get_by_role("button", name="Approve these 2"))
    assert [(await site.decided(each.id)).state for each in alike] == ["approved", "approved"]
    assert (await site.record(other.id)).state == "pending"
