"""An impatient person: random keys, clicks and typing while the list changes.

Before each act the test notes which record it is aimed at: the one that has the focus and whose
buttons are on the screen, or the one whose button the pointer was moved to. Whatever happens in
between, no other record may be decided by it.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Page, Request

import agent_adapter as aa
from tests.sampling import sample

from ._site import SECONDS, Site

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

STEPS = sample("steps of an impatient person", quick=200, full=2_000)
SCREENS: dict[str, Any] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 375, "height": 667}, "has_touch": True},
}
WAITING = 5

CHOSEN = """() => {
  const record = document.activeElement && document.activeElement.closest('[data-record]');
  const button = record && record.querySelector('[data-approve]');
  if (!button) return null;
  const box = button.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight ? record.id : null;
}"""
BUTTONS = """() => Array.from(
  document.querySelectorAll('[data-record] [data-decides]')
).map((each) => {
  const box = each.getBoundingClientRect();
  return {id: each.closest('[data-record]').id, x: box.left + box.width / 2, y: box.top + 20};
}).filter((at) => at.y > 0 && at.y < innerHeight)"""


@dataclass
class Person:
    """Somebody at a page, what they are aiming at, and the answers that are under way."""

    site: Site
    page: Page
    draw: random.Random
    touch: bool
    aimed: str | None = None
    under_way: set[Request] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)

    def watch(self) -> None:
        """Know when every form that was sent is answered."""
        page = self.page
        page.on("request", lambda it: self.under_way.add(it) if it.method == "POST" else None)
        for end in ("requestfinished", "requestfailed"):
            page.on(end, self.under_way.discard)

    async def key(self) -> str | None:
        """Press a key; it is aimed at the chosen record."""
        chosen: str | None = await self.page.evaluate(CHOSEN)
        await self._meanwhile()
        await self.page.keyboard.press(self.draw.choice("aaddjjkke") if chosen else "j")
        return chosen

    async def enter(self) -> str | None:
        """Type a reason and press Enter, which is aimed at nothing."""
        fields = await self.page.locator("main textarea, main input[name=q]").all()
        seen = [each for each in fields if await each.is_visible()]
        if seen:
            await self.draw.choice(seen).focus()
            await self.page.keyboard.type("a deed ")
            await self.page.keyboard.press(self.draw.choice(("Enter", "Control+Enter", "Escape")))
        return None

    async def point(self) -> str | None:
        """Move to a button, and click once, twice or not at all, maybe after the list changed."""
        buttons: list[dict[str, Any]] = await self.page.evaluate(BUTTONS)
        if not buttons:
            return None
        at = self.draw.choice(buttons)
        if self.touch:
            await self._meanwhile()
            await self.page.touchscreen.tap(at["x"], at["y"])
            return str(at["id"])
        await self.page.mouse.move(at["x"], at["y"], steps=2)
        self.aimed = str(at["id"])
        await self._meanwhile()
        for _ in range(self.draw.randint(0, 2)):
            await self._click()
        return self.aimed

    async def click_again(self) -> str | None:
        """Click where the pointer rests; it is aimed at what it was moved to."""
        if self.touch:
            return None
        await self._meanwhile()
        await self._click()
        return self.aimed

    async def scroll(self) -> str | None:
        """Turn the wheel; what the pointer was aimed at has gone."""
        await self.page.mouse.wheel(0, self.draw.randint(-900, 900))
        self.aimed = None
        return None

    async def go(self) -> str | None:
        """Go to the list, or to a record's own page."""
        waiting = await aa.Inbox(self.site.store).list()
        paths = ["/approvals", "/approvals", *(f"/approvals/{each.id}" for each in waiting[:2])]
        await self.page.goto(self.draw.choice(paths))
        self.aimed = None
        return None

    async def act(self) -> str | None:
        """One act; the record that it is aimed at."""
        acts = [self.key] * 5 + [self.point] * 4 + [self.click_again] * 2
        return await self.draw.choice([*acts, self.enter, self.scroll, self.go])()

    async def _click(self) -> None:
        await self.page.mouse.down()
        await self.page.mouse.up()

    async def _meanwhile(self) -> None:
        """Now and then somebody else decides a record, or asks for one."""
        chance = self.draw.random()
        inbox = aa.Inbox(self.site.store)
        waiting = await inbox.list()
        if chance < 0.2 and waiting:
            record = self.draw.choice(waiting)
            await inbox.decide(record.id, "denied", reviewer="lee")
        if len(waiting) < WAITING:
            await self.site.ask(order_id=f"impatient-{self.draw.randint(0, 10**9)}")
        if self.draw.random() < 0.3:
            await asyncio.sleep(self.draw.random())

    async def settled(self) -> set[str]:
        """The records that this person has decided since the last look."""
        async with asyncio.timeout(SECONDS):
            while self.under_way:
                await asyncio.sleep(0.01)
        mine = {"reviewer": "token:kim"}
        rows = await self.site.store.read(lambda tx: tx.select("approvals", mine))
        new = {row["id"] for row in rows} - self.decided
        self.decided |= new
        return new


@pytest.mark.parametrize("screen", SCREENS)
async def test_nothing_is_decided_but_what_was_aimed_at(site: Site, screen: str) -> None:
    """Over all steps, each decision is on the record that the act was aimed at."""
    wrong: list[str] = []
    async with site.signed_in(**SCREENS[screen]) as page:
        await page.route("**/decide", _slowly)
        person = Person(site, page, random.Random(screen), touch=screen == "phone")
        person.watch()
        await person.settled()
        count = 0
        for step in range(STEPS // len(SCREENS)):
            aimed = await person.act()
            decided = await person.settled()
            count += len(decided)
            if decided - {aimed}:
                wrong.append(f"step {step}: {decided} where {aimed} was meant")
        await page.unroute_all(behavior="wait")
    assert wrong == []
    assert count > 0, "nobody decided anything: the steps prove nothing"


async def _slowly(route: Any) -> None:
    await asyncio.sleep(0.05)
    await route.continue_()
