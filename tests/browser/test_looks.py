"""How pages look and read: sizes, themes, and a scan for accessibility."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import expect

import agent_adapter as aa
from agent_adapter.store import people

from ._site import ROOT, Site, program, told

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

IMAGES = ROOT / "docs" / "images"
WIDTHS = (320, 768, 1600)
THEMES = ("light", "dark")
SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
async def pages(served: Site) -> AsyncIterator[dict[str, str]]:
    """A page of each kind, with something on it."""
    await served.clear()
    record = await served.ask(order_id="A-1042", amount=40)
    await served.ask(order_id="B-77", amount=19.5, urgent=True)
    voted = await served.ask(votes=2, order_id="C-1 " + "and so on " * 500)
    edit = {"order_id": "C-2", "amount": 3, "urgent": True}
    await aa.Inbox(served.store).approve(voted.id, reviewer="os:zoe", arguments=edit)
    decided = await served.ask(order_id="D-5")
    await aa.Inbox(served.store).approve(decided.id, reviewer="os:zoe", reason="checked")
    await served.store.write(lambda tx: people.add(tx, "Zoe", by="os:root"))
    async with program("die", served) as running:
        await running.wait()
    async with program("workflow", served) as running:
        channel = (await told(running))["channel"]
        [call] = await served.store.read(lambda tx: tx.select("calls", {"tool": "ship"}, limit=1))
        yield {
            "approvals": "/approvals",
            "approval": f"/approvals/{record.id}",
            "edited": f"/approvals/{voted.id}",
            "decided": f"/approvals/{decided.id}",
            "found": "/approvals?q=C-1&risk=votes",
            "runs": "/runs",
            "waiting": "/runs?status=waiting",
            "run": f"/runs/{record.run_id}",
            "chain": f"/runs/{record.run_id}/chain",
            "call": f"/calls/{call['call_key']}",
            "doubt": "/in-doubt",
            "channels": "/channels",
            "channel": f"/channels/{channel}",
            "replay": f"/channels/{channel}/replay",
            "said": f"/channels/{channel}/search?q=lamps",
            "tools": "/tools",
            "tool": "/tools/refund",
            "health": "/health",
            "people": "/people",
        }


@pytest.mark.parametrize("theme", THEMES)
async def test_pages_are_accessible(served: Site, pages: dict[str, str], theme: Any) -> None:
    """Axe finds nothing serious on any page, an error's and the form to sign in included."""
    scan = pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT
    found: list[str] = []
    async with served.signed_in("ada", lenient=True, color_scheme=theme) as page:
        for path in (*pages.values(), "/runs/none", "/sign-in"):
            await page.goto(path)
            await page.evaluate(scan)
            results = await page.evaluate("axe.run({resultTypes: ['violations']})")
            assert len(results["passes"]) > 5
            for each in results["violations"]:
                if each["impact"] in ("serious", "critical"):
                    targets = [node["html"][:120] for node in each["nodes"][:3]]
                    found.append(f"{path}: {each['id']}: {targets}")
    assert found == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
async def test_pages_fit(
    served: Site, pages: dict[str, str], width: int, theme: Any, tmp_path: Path
) -> None:
    """From a phone to a wide screen no page is wider than its window, in either theme."""
    size: Any = {"width": width, "height": 900}
    wide: list[str] = []
    async with served.signed_in("ada", color_scheme=theme, viewport=size) as page:
        for name, path in pages.items():
            await page.goto(path)
            shot = await page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
            assert shot.startswith(b"\x89PNG")
            if await page.evaluate(SCROLLS) > 0:
                wide.append(path)
    assert wide == []


async def test_pictures_of_the_readme(served: Site, pages: dict[str, str], tmp_path: Path) -> None:
    """The inbox and a channel as the README shows them; AGENT_ADAPTER_IMAGES=1 draws them anew."""
    anew = os.environ.get("AGENT_ADAPTER_IMAGES") == "1"
    folder = IMAGES if anew else tmp_path
    folder.mkdir(exist_ok=True)
    size: Any = {"width": 1200, "height": 760}
    async with served.signed_in("ada", viewport=size) as page:
        # For a moment after they appear, buttons rest and are pale.
        await expect(page.locator("[data-approve]").first).to_be_enabled()
        await page.screenshot(path=folder / "console-approvals.png")
        await page.goto(pages["channel"])
        await page.get_by_label("Message").fill("Please pay back order C-9: it never came.")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("svg .current")).to_contain_text("worker")
        await expect(page.locator("#log")).to_contain_text("it never came")
        await page.goto(pages["channel"])
        await page.screenshot(path=folder / "console-channel.png")
    for name in ("approvals", "channel"):
        assert (IMAGES / f"console-{name}.png").stat().st_size < 200_000
