"""A word in the browser lets a waiting program go on: each is a real process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("playwright")
pytest.importorskip("sse_starlette")

from playwright.async_api import Browser, Page, expect

import agent_adapter as aa
from agent_adapter.exec.approval.signing import create_key

from ._hands import press
from ._programs import registry
from ._site import Site, console, program, told

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def _approve(site: Site, page: Page) -> None:
    record = await site.waiting()
    await page.goto(f"/approvals/{record.id}")
    await press(page.get_by_role("button", name="Approve refund"))
    # The waiting program may have taken the word before the page shows it.
    await expect(page.locator("[data-state]")).to_have_text(re.compile("approved|taken"))


async def test_a_waiting_ag2_run(site: Site, page: Page) -> None:
    """The AG2 agent's call waits while the agent runs; approved here, it runs once."""
    pytest.importorskip("ag2")
    async with program("ag2", site) as running:
        await _approve(site, page)
        facts = await told(running)
    assert facts["body"] == "done"
    assert facts["refunds"] == [{"order_id": "AG2", "amount": 40.0, "urgent": False}]


async def test_an_interrupted_langgraph_run(site: Site, page: Page) -> None:
    """The graph is interrupted; once its record is approved here, it is resumed and pays once."""
    pytest.importorskip("langgraph")
    async with program("langgraph", site) as running:
        assert (await told(running))["refunds"] == []
        await _approve(site, page)
        facts = await told(running)
    assert "7.00 EUR paid back for LG" in facts["said"]
    assert len(facts["refunds"]) == 1


async def test_a_denied_langgraph_run(site: Site, page: Page) -> None:
    """After a denial here the graph goes on without the call."""
    pytest.importorskip("langgraph")
    async with program("langgraph", site) as running:
        await told(running)
        record = await site.waiting()
        await page.goto(f"/approvals/{record.id}")
        await press(page.get_by_role("button", name="Deny"))
        facts = await told(running)
    assert facts["refunds"] == []
    assert "approval-denied" in facts["said"]


async def test_a_person_s_turn_in_a_channel(site: Site, page: Page) -> None:
    """Kim speaks, the worker's turn is parked for an approval, approved it ends the workflow."""
    async with program("workflow", site) as running:
        channel = (await told(running))["channel"]
        await page.goto(f"/channels/{channel}")
        await expect(page.locator("#expected")).to_have_text("kim")
        await expect(page.locator("svg .current")).to_contain_text("kim")
        await page.get_by_label("Message").fill("Pay back order WF")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("#log")).to_contain_text("Pay back order WF")
        waits = page.get_by_role("link", name=re.compile("^apr_"))
        await expect(waits).to_be_visible()
        record = await page.context.new_page()
        await record.goto(await waits.get_attribute("href") or "")
        await press(record.get_by_role("button", name="Approve refund"))
        await expect(page.locator("#log")).to_contain_text("3.00 EUR paid back for WF")
        await expect(page.locator("#state")).to_have_text("closed")
        facts = await told(running)
    assert facts["reason"] == "sequence_complete"
    assert facts["refunds"] == [{"order_id": "WF", "amount": 3, "urgent": False}]


@pytest.mark.parametrize("answer", ["It happened", "It did not happen"])
async def test_a_write_in_doubt_is_settled(site: Site, page: Page, answer: str) -> None:
    """A write whose process was killed waits for a person, who says what the other side shows."""
    async with program("die", site) as running:
        assert await running.wait() != 0
    await page.goto("/in-doubt")
    card = page.locator(".doubt")
    await expect(card).to_contain_text("started by a process that died")
    await card.get_by_role("radio", name=answer).check()
    if answer == "It happened":
        await card.get_by_label(re.compile("Result")).fill('"S1"')
    await card.get_by_label("How do you know").fill("looked at the carrier's page")
    await card.get_by_role("button", name="Resolve").click()
    await expect(page.get_by_text("No writes with unknown outcome.")).to_be_visible()
    where = {"kind": "resolved"}
    rows = await site.store.read(lambda tx: tx.select("ledger", where, order_by="at"))
    assert b"token:kim" in rows[-1]["body"]
    assert (b'"ok"' if answer == "It happened" else b'"aborted"') in rows[-1]["body"]


async def test_a_signed_word(browser: Browser, tmp_path: Path) -> None:
    """With kim's key in its folder the console signs for kim, and an executor that pins it runs."""
    pytest.importorskip("cryptography")
    public = create_key(tmp_path / "kim.key").public
    url = f"sqlite:///{tmp_path / 'signed.db'}"
    async with console(browser, url, "--reviewer-keys", str(tmp_path)) as site:
        port = aa.DeferredApproval(site.store, require_signed=True, reviewers={"kim": public})
        executor = aa.Executor(registry, approval=port, store=site.store)
        with pytest.raises(aa.ApprovalPending) as caught:
            await executor.run("refund", {"order_id": "SIGNED", "amount": 2})
        record = str(caught.value.id)
        async with site.signed_in("lee") as page:
            await page.goto(f"/approvals/{record}")
            await press(page.get_by_role("button", name="Approve refund"))
            await expect(page.get_by_role("alert")).to_contain_text("sign")
        assert (await site.record(record)).state == "pending"
        async with site.signed_in("kim") as page:
            await page.goto(f"/approvals/{record}")
            await press(page.get_by_role("button", name="Approve refund"))
            await expect(page.locator("[data-state]")).to_have_text("approved")
        assert await executor.resume(record) == "2.00 EUR paid back for SIGNED"
