"""No accident decides: only a deliberate act on the record that a person chose."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Locator, Page, expect

import agent_adapter as aa
from agent_adapter.exec.approval.inbox import ApprovalRecord

from ._hands import press
from ._site import Site

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

FIELDS = "main input:not([type=hidden]):not([type=checkbox]), main textarea"
KEEP_CHANGING = """async () => {
    const arming = await import("/static/arming.js");
    arming.disarm();
    window.changing = setInterval(arming.disarm, 20);
}"""

# What a browser sends where a page comes up, or moves, under a pointer that rests.
RESTING_POINTER = """(button) => button.dispatchEvent(
    new PointerEvent("pointermove", {bubbles: true, pointerType: "mouse", coalescedEvents: []})
)"""
IN_PAGE = "(each) => [each.offsetTop, each.offsetHeight]"  # wherever the page is scrolled to
COMES_BACK = "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"


async def _three(site: Site, page: Page) -> list[ApprovalRecord]:
    asked = [await site.ask(order_id=f"deciding-{n}") for n in range(3)]
    await page.goto("/approvals")
    await expect(page.locator(f"#{asked[-1].id}")).to_be_visible()
    return asked


async def _elsewhere(site: Site, page: Page, record: ApprovalRecord) -> Locator:
    """Decide a record by another way than this page; its place in the page, once that knows."""
    await aa.Inbox(site.store).deny(record.id, reviewer="lee")
    place = page.locator(f"#{record.id}")
    await expect(place).to_contain_text("denied")
    return place


async def _states(site: Site, records: list[ApprovalRecord]) -> list[str]:
    return [(await site.record(each.id)).state for each in records]


async def test_d1_enter_in_a_field_of_the_inbox(site: Site, page: Page) -> None:
    """D1: Enter in any text field of the inbox, a bulk form's included, decides nothing."""
    asked = [await site.ask(order_id="deciding-alike") for _ in range(2)]
    await page.goto("/approvals")
    fields = await page.locator(FIELDS).all()
    assert len(fields) >= 2
    for field in fields:
        if await field.is_visible():
            await _enter(field)
    assert await _states(site, asked) == ["pending", "pending"]


async def test_d1_enter_in_a_field_of_a_record(site: Site, page: Page) -> None:
    """D1: Enter in the reason, and in any field of the form to edit, decides nothing."""
    record = await site.ask(order_id="deciding-edit")
    await page.goto(f"/approvals/{record.id}")
    fields = [each for each in await page.locator(FIELDS).all() if await each.is_visible()]
    assert len(fields) >= 4
    for field in fields:
        await _enter(field)
    assert page.url.endswith(record.id)
    assert await _states(site, [record]) == ["pending"]


async def test_d1_without_javascript(site: Site) -> None:
    """D1: the forms themselves submit nothing on Enter."""
    record = await site.ask(order_id="deciding-plain")
    async with site.signed_in(java_script_enabled=False) as page:
        for path in ("/approvals", f"/approvals/{record.id}"):
            await page.goto(path)
            for field in await page.locator(FIELDS).all():
                if await field.is_visible():
                    await _enter(field)
    assert await _states(site, [record]) == ["pending"]


async def _enter(field: Locator) -> None:
    if await field.is_editable():
        await field.fill("1")
        await field.press("Enter")
        await field.press("Control+Enter")


async def test_d2_a_key_after_the_record_is_decided(site: Site, page: Page) -> None:
    """D2: the chosen record is decided elsewhere: its place keeps the focus, `a` does nothing."""
    asked = await _three(site, page)
    await page.locator(f"#{asked[1].id}").focus()
    place = await _elsewhere(site, page, asked[1])
    await expect(place).to_be_focused()
    for key in ("a", "d", "a"):
        await page.keyboard.press(key)
    await expect(page.locator("#live")).to_contain_text("choose a request first")
    assert await _states(site, asked) == ["pending", "denied", "pending"]


async def test_d2_keys_twice(site: Site, page: Page) -> None:
    """D2: `a` twice decides one record; the next needs to be chosen."""
    asked = await _three(site, page)
    await page.locator(f"#{asked[0].id}").focus()
    await _settled(page, asked[0])
    for _ in range(3):
        await page.keyboard.press("a")
    await site.decided(asked[0].id)
    await expect(page.locator(f"#{asked[0].id}")).to_be_focused()
    await page.keyboard.press("a")
    assert await _states(site, asked) == ["approved", "pending", "pending"]


async def test_keys_with_nothing_focused(site: Site, page: Page) -> None:
    """With nothing chosen a key decides nothing, in a list of one record, too."""
    record = await site.ask(order_id="deciding-alone")
    await page.goto("/approvals")
    await _settled(page, record)
    for key in ("a", "d"):
        await page.keyboard.press(key)
    await expect(page.locator("#live")).to_contain_text("choose a request first")
    assert await _states(site, [record]) == ["pending"]


async def test_a_key_with_the_button_off_the_screen(site: Site, page: Page) -> None:
    """`a` works only while the chosen record's button can be seen."""
    asked = await _three(site, page)
    await page.set_viewport_size({"width": 375, "height": 667})
    await page.locator(f"#{asked[0].id}").focus()
    await _settled(page, asked[0])
    await page.evaluate("window.scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    assert await page.evaluate("window.scrollY") > 300
    await page.keyboard.press("a")
    await expect(page.locator("#live")).to_contain_text("not on the screen")
    assert (await _states(site, asked))[0] == "pending"


async def test_d3_the_list_moves_under_the_pointer(site: Site, page: Page) -> None:
    """D3: the pointer rests on Approve of 2 while 2 is decided elsewhere: a click does nothing."""
    asked = await _three(site, page)
    await _settled(page, asked[1])
    button = page.locator(f"#{asked[1].id}").get_by_role("button", name="Approve")
    await button.hover()
    await _elsewhere(site, page, asked[1])
    for _ in range(3):
        await page.mouse.down()
        await page.mouse.up()
    assert await _states(site, asked) == ["pending", "denied", "pending"]


async def test_d3_another_button_comes_under_the_pointer(site: Site, page: Page) -> None:
    """D3: whatever moves the page, a click on a button that slid under the pointer says why not."""
    asked = await _three(site, page)
    await _settled(page, asked[2])
    # Room below, so that the page does not scroll when it becomes shorter.
    await page.evaluate("document.body.style.paddingBottom = '3000px'")
    place = page.locator(f"#{asked[1].id}").get_by_role("button", name="Approve")
    await place.hover()
    await page.evaluate(f"document.getElementById('{asked[1].id}').remove()")
    for _ in range(3):
        await page.mouse.down()
        await page.mouse.up()
    await expect(page.locator("#live")).to_contain_text("moved under the pointer")
    assert (await _states(site, asked))[2] == "pending"
    await page.mouse.move(5, 5)
    await press(page.locator(f"#{asked[2].id}").get_by_role("button", name="Approve"))
    assert (await site.decided(asked[2].id)).state == "approved"


async def test_d3_a_page_comes_up_under_the_pointer(site: Site, page: Page) -> None:
    """D3: the pointer rests where a fresh page has its button: a click without a move says so."""
    record = await site.ask(order_id="deciding-resting")
    await page.goto(f"/approvals/{record.id}")
    button = page.get_by_role("button", name="Approve refund")
    await button.hover()
    await page.reload()
    await expect(button).to_be_enabled()
    await button.evaluate(RESTING_POINTER)
    await _click_here(page)
    await expect(page.locator("#live")).to_contain_text("moved under the pointer")
    assert await _states(site, [record]) == ["pending"]


async def test_d3_a_page_comes_back_under_the_pointer(site: Site, page: Page) -> None:
    """D3: a page from the browser's cache forgets where the pointer was when it was left."""
    record = await site.ask(order_id="deciding-back")
    await page.goto(f"/approvals/{record.id}")
    button = page.get_by_role("button", name="Approve refund")
    await button.hover()
    await page.evaluate(COMES_BACK)
    await expect(button).to_be_enabled()
    await _click_here(page)
    await expect(page.locator("#live")).to_contain_text("moved under the pointer")
    await press(button)
    assert (await site.decided(record.id)).state == "approved"


async def _click_here(page: Page) -> None:
    await page.mouse.down()
    await page.mouse.up()


async def test_a_double_click_decides_once(site: Site, page: Page) -> None:
    """The second click of a double click is not for the record that comes next."""
    asked = await _three(site, page)
    await page.locator(f"#{asked[0].id}").get_by_role("button", name="Approve").dblclick()
    await site.decided(asked[0].id)
    assert await _states(site, asked) == ["approved", "pending", "pending"]


async def test_a_tap_right_after_the_page_has_changed(site: Site) -> None:
    """On a phone, too, a tap decides only on a page that stood still; an earlier one says so."""
    record = await site.ask(order_id="deciding-tap")
    phone: Any = {"viewport": {"width": 375, "height": 667}, "has_touch": True}
    async with site.signed_in(**phone) as page:
        await _settled(page, record)
        button = page.locator(f"#{record.id}").get_by_role("button", name="Approve")
        await page.evaluate(KEEP_CHANGING)
        await button.tap()
        await expect(page.locator("#live")).to_contain_text("has just changed")
        assert await _states(site, [record]) == ["pending"]
        await page.evaluate("clearInterval(window.changing)")
        await press(button, tap=True)
    assert (await site.decided(record.id)).state == "approved"


async def _settled(page: Page, record: ApprovalRecord) -> None:
    """Return once the record's buttons can be used: they rest for a moment after they appear."""
    button = page.locator(f"#{record.id}").get_by_role("button", name="Approve")
    await expect(button).to_be_enabled()


async def test_a_record_that_was_decided_keeps_its_place(site: Site, page: Page) -> None:
    """Nothing that follows it moves."""
    asked = await _three(site, page)
    await _settled(page, asked[0])
    before = await page.locator(f"#{asked[2].id}").evaluate(IN_PAGE)
    await press(page.locator(f"#{asked[0].id}").get_by_role("button", name="Approve"))
    await expect(page.locator(f"#{asked[0].id}")).to_contain_text("approved")
    await _elsewhere(site, page, asked[1])
    assert await page.locator(f"#{asked[2].id}").evaluate(IN_PAGE) == before
