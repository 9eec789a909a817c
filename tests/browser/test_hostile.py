"""Text of models and tools is shown inert, and whole."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Page, expect

from ._hands import press
from ._site import Site, program, told

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

SCRIPTS = [
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    '"><svg onload="window.ran = 1">',
    "</pre><a href='javascript:window.ran=1' id=bait>click</a>",
    "{{ 7 * 7 }}${7*7}",
    '<div hx-get="/approvals" hx-trigger="load" data-record>x</div>',
]
HIDDEN = [
    ("\u202etxt.exe", "\\u202e"),
    ("a\u200bb", "\\u200b"),
    ("\u2066x\u2069", "\\u2066"),
    ("\x1b[2J", "\\u001b"),
    ("\U000e0041", "\\U000e0041"),
    ("\u3164", "\\u3164"),
]


@pytest.mark.parametrize("text", SCRIPTS)
async def test_markup_is_text(site: Site, page: Page, text: str) -> None:
    """A20: nothing in an argument becomes part of a page, on arrival or after a load."""
    record = await site.ask(order_id=text)
    value = page.locator(f"#{record.id} [data-what]")
    shown = text.replace('"', '\\"')
    await expect(value).to_contain_text(text)
    for path in (f"/approvals/{record.id}", f"/runs/{record.run_id}"):
        await page.goto(path)
        assert await page.evaluate("window.ran") is None
        assert await page.locator("#bait, main svg, main img").count() == 0
    await page.goto(f"/approvals/{record.id}")
    await expect(page.get_by_label("Arguments", exact=True)).to_contain_text(shown)
    await expect(page.get_by_label("order_id")).to_have_value(text)


@pytest.mark.parametrize(("text", "seen"), HIDDEN)
async def test_the_invisible_is_visible(site: Site, page: Page, text: str, seen: str) -> None:
    """A20: what could hide or reorder text is an escape, in the list and on the record's page."""
    record = await site.ask(order_id=f"A1{text}")
    await expect(page.locator(f"#{record.id} [data-what]")).to_contain_text(seen)
    await page.goto(f"/approvals/{record.id}")
    body = await page.locator("body").inner_text()
    assert seen in body
    assert text not in body


async def test_what_is_said_in_a_channel_is_text(site: Site, page: Page) -> None:
    """A message is shown as it was written, as it arrives and after a load."""
    said = f"{SCRIPTS[1]}\u202e end"
    async with program("workflow", site) as running:
        path = f"/channels/{(await told(running))['channel']}"
        await page.goto(path)
        await page.get_by_label("Message").fill(said)
        await page.get_by_role("button", name="Send").click()
        for _ in range(2):
            await expect(page.locator("#log")).to_contain_text(f"{SCRIPTS[1]}\\u202e end")
            assert await page.evaluate("window.ran") is None
            assert await page.locator("main img").count() == 0
            await page.goto(path)


async def test_a_value_of_100_kb_is_shown_to_its_end(site: Site, page: Page) -> None:
    """The list says how much is left and does not decide; the record's page has all of it."""
    record = await site.ask(order_id="x" * 100_000 + "THE-END")
    card = page.locator(f"#{record.id}")
    await expect(card).to_contain_text("more characters")
    assert await card.get_by_role("button", name="Approve").count() == 0
    await card.get_by_role("link", name="Open the request").click()
    await expect(page.get_by_label("Arguments", exact=True)).to_contain_text("THE-END")
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(overflow) <= 0
    await press(page.get_by_role("button", name="Deny"))
    assert (await site.decided(record.id)).state == "denied"


async def test_a_tool_s_own_words_do_not_lead_away(site: Site, page: Page) -> None:
    """The policy allows this site's own scripts, styles and forms, and nothing else."""
    answer = await page.goto("/approvals")
    assert answer is not None
    policy = (await answer.all_headers())["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert await page.evaluate("document.querySelectorAll('script:not([src]), style').length") == 0
