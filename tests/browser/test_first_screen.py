"""What will run is seen first: inside the first screen, and long values by opening them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Page, expect

import agent_adapter as aa
from tests.sampling import sample

from ._hands import press
from ._site import Site

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

SIZES = {375: 667, 768: 1024, 1440: 900}
RECORDS = 60
LOOKED_AT = sample("records at three widths", quick=12, full=RECORDS)

INSIDE = """() => {
  const bar = document.querySelector('.act').getBoundingClientRect();
  const low = Math.min(innerHeight, bar.top);
  const parts = ['.tool', '[data-what] dt', '[data-what] dd', 'details.more > summary'];
  return parts.flatMap((part) => Array.from(document.querySelectorAll(`.decision ${part}`)))
    .map((each) => each.getBoundingClientRect())
    .filter((box) => box.top < 0 || box.bottom > low + 1 || box.left < 0 || box.right > innerWidth)
    .length;
}"""


def anything(**arguments: Any) -> str:
    """Do whatever the arguments say."""
    return str(arguments)


def _text(draw: random.Random, size: int) -> str:
    words = ["lamps", "order", "DELETE FROM carts;", "import os\n\t", "<b>", "\u202e", "é", "漢字"]
    text = ""
    while len(text) < size:
        text += draw.choice(words) + draw.choice((" ", " ", "\n"))
    return text[:size]


def _arguments(n: int) -> dict[str, Any]:
    """Arguments of one of the kinds that people meet."""
    draw = random.Random(n)
    kinds: list[dict[str, Any]] = [
        {"amount": draw.random() * 10**6, "account": "DE89 3704 0044 0532 0130 00"},
        {"code": "def run():\n" + "\n".join(f"    step_{i}()" for i in range(n * 3))},
        {"query": "DELETE FROM carts WHERE updated_at < now() " + "AND state = 'open' " * n},
        {"to": "a@b.example", "subject": _text(draw, 60), "body": _text(draw, 200 * n)},
        {"nested": {"a": {"b": {"c": [1, {"d": _text(draw, 50)}]}}, "list": list(range(n * 20))}},
        {f"argument_{i}": _text(draw, 30 * i) for i in range(n)},
        {"blob": "x" * 200_000},
        {"hostile": "<script>alert(1)</script>\u202e\n[boss]: I approve" + _text(draw, 90)},
        {},
        {"word": "w" * (20 * n), "flag": True, "none": None, "text": "5", "empty": ""},
    ]
    return kinds[n % len(kinds)]


@pytest.fixture(scope="module")
async def asked(served: Site) -> AsyncIterator[list[str]]:
    """Records of every kind; some need two votes, some of these bear an edit."""
    await served.clear()
    ids, store = [], served.store
    for n in range(RECORDS)[:: RECORDS // LOOKED_AT]:
        port = aa.QuorumApproval(2, store) if n % 3 == 0 else aa.DeferredApproval(store)
        executor = aa.Executor(aa.ToolRegistry(), approval=port, store=store)
        spec = aa.ToolSpec.from_json_schema(
            f"tool_{n}", "Do it.", {"type": "object"}, anything, confirm=True
        )
        ctx = aa.ToolContext(run_id=f"run_screen_{n}", principal="ann")
        with pytest.raises(aa.ApprovalPending) as caught:
            await executor.run_spec(spec, _arguments(n), ctx)
        if n % 6 == 0:
            edit = _arguments(n) | {"added": "by hand"}
            await aa.Inbox(store).approve(caught.value.id, reviewer="os:zoe", arguments=edit)
        ids.append(caught.value.id)
    yield ids
    await served.clear()


@pytest.mark.parametrize("width", SIZES)
async def test_what_will_run_is_inside_the_first_screen(
    served: Site, asked: list[str], width: int
) -> None:
    """Tool and arguments lie above the buttons, which are on the screen; nothing was scrolled."""
    size: Any = {"width": width, "height": SIZES[width]}
    outside: list[str] = []
    async with served.signed_in(viewport=size) as page:
        for id in asked:
            await page.goto(f"/approvals/{id}")
            approve = page.locator(".act [data-approve]")
            await expect(approve).to_be_in_viewport(ratio=1)
            outside += [id] * bool(await page.evaluate(INSIDE))
            assert await page.locator("[data-what]").count() >= 1
    assert outside == []


async def test_a_long_value_is_approved_after_it_was_opened(served: Site, page: Page) -> None:
    """Its start and size are shown; Approve is held until the rest was opened, Deny is not."""
    record = await served.ask(order_id="start " + "x" * 5_000 + " end")
    await page.goto(f"/approvals/{record.id}")
    approve, rest = page.locator("[data-approve]"), page.locator("[data-rest]")
    await expect(page.locator("[data-what]")).to_contain_text("start")
    await expect(rest.locator("summary")).to_contain_text("5,010 bytes")
    await expect(page.locator("[data-deny]")).to_be_enabled()
    await expect(approve).to_have_attribute("aria-disabled", "true")
    await page.keyboard.press("a")
    await expect(page.locator("#live")).to_contain_text("open the rest")
    assert (await served.record(record.id)).state == "pending"
    await rest.locator("summary").click()
    await expect(rest).to_contain_text("end")
    await expect(approve).to_be_enabled()
    await press(approve)
    assert (await served.decided(record.id)).state == "approved"


async def test_without_javascript_everything_can_be_shown(served: Site) -> None:
    """A link shows the whole call; before it, the console refuses to approve."""
    record = await served.ask(order_id="start " + "x" * 5_000 + " end")
    async with served.signed_in(java_script_enabled=False) as page:
        await page.goto(f"/approvals/{record.id}")
        await page.locator("[data-approve]").click()
        await expect(page.get_by_role("alert")).to_contain_text("open the rest")
        await page.goto(f"/approvals/{record.id}")
        await page.get_by_role("link", name="show everything").click()
        await page.locator("[data-approve]").click()
        await expect(page.locator("[data-state]")).to_have_text("approved")
