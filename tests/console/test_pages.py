"""Runs, doubts, tools and health as people see them."""

from __future__ import annotations

import pytest

import agent_adapter as aa
from tests.console._shop import ShopConsole

pytestmark = pytest.mark.anyio


async def _paid(shop: ShopConsole, run: str = "run_1") -> str:
    """A refund that was approved and ran."""
    id = await shop.ask(run=run)
    await aa.Inbox(shop.store).approve(id, reviewer="os:bob", reason="checked")
    await shop.executor.resume(id)
    return id


async def test_runs_are_listed_the_newest_first(shop: ShopConsole) -> None:
    """With how many calls they made and what waits."""
    for n in range(3):
        await shop.ask(run=f"run_{n}")
    text = (await shop.browser()).get("/runs").text
    assert text.index("run_2") < text.index("run_1") < text.index("run_0")


@pytest.mark.parametrize(
    ("query", "found"),
    [("tool=refund", "run_paid"), ("ending=unknown", "run_doubt"), ("who=zoe", "run_zoe")],
)
async def test_runs_are_filtered(shop: ShopConsole, query: str, found: str) -> None:
    """By tool, by how a call ended, by whom they are for."""
    await _paid(shop, "run_paid")
    await shop.doubt("run_doubt")
    await shop.ask(run="run_zoe", principal="zoe")
    text = (await shop.browser()).get(f"/runs?{query}").text
    others = {"run_paid", "run_doubt", "run_zoe"} - {found}
    assert f"/runs/{found}" in text
    if query != "tool=refund":
        assert not any(f"/runs/{other}" in text for other in others)


async def test_a_run_is_a_timeline(shop: ShopConsole) -> None:
    """Arguments, who was asked and what they said, how it ended, and that the chain is whole."""
    await _paid(shop)
    text = (await shop.browser()).get("/runs/run_1").text
    for wanted in ("refund", "A1", "Approval requested", "approved by os:bob", "checked", "paid 5"):
        assert wanted in text
    assert 'data-chain="whole"' in text


@pytest.mark.alters_store
async def test_a_broken_chain_is_said(shop: ShopConsole) -> None:
    """On the run's page and on its own."""
    await _paid(shop)
    where = {"run_id": "run_1", "seq": 2}
    await shop.store.write(lambda tx: tx.update("ledger", where, {"body": b'{"x": 1}'}))
    browser = await shop.browser()
    for path in ("/runs/run_1", "/runs/run_1/chain"):
        text = browser.get(path).text
        assert 'data-chain="broken"' in text and "entry 2 was changed" in text


async def test_a_call_is_shown_whole(shop: ShopConsole) -> None:
    """With its approval and its entries of the chain."""
    id = await _paid(shop)
    rows = await shop.store.read(lambda tx: tx.select("calls", {"run_id": "run_1"}))
    text = (await shop.browser()).get(f"/calls/{rows[0]['call_key']}").text
    for wanted in (id, "paid 5", "intent", "outcome", "approval-decided"):
        assert wanted in text


async def test_a_refused_call_is_in_the_timeline(shop: ShopConsole) -> None:
    """What was stopped before it began left a trace."""
    with pytest.raises(aa.ToolArgsInvalid):
        await shop.executor.run("refund", {"amount": "?"}, ctx=aa.ToolContext(run_id="run_r"))
    await shop.store.flush()
    text = (await shop.browser()).get("/runs/run_r").text
    assert "refused" in text and "tool-args-invalid" in text


async def test_a_doubt_is_settled_with_a_result(shop: ShopConsole) -> None:
    """The same call is answered from the record, and the ledger names who said so."""
    key = await shop.doubt()
    browser = await shop.browser("kim")
    assert "ended unknown" in browser.get("/in-doubt").text
    form = {"answer": "done", "reason": "on the bank's page", "result": "paid 5"}
    assert browser.post(f"/in-doubt/{key}", form).status_code == 303
    assert "No writes with unknown outcome" in browser.get("/in-doubt").text
    text = browser.get("/runs/run_doubt").text
    assert "token:kim reports that it happened" in text and "on the bank" in text


async def test_a_doubt_that_was_not_done_may_run_again(shop: ShopConsole) -> None:
    """Settled twice it is stale."""
    key = await shop.doubt()
    browser = await shop.browser()
    form = {"answer": "not-done", "reason": "no trace of it"}
    assert browser.post(f"/in-doubt/{key}", form).status_code == 303
    again = browser.post(f"/in-doubt/{key}", form)
    assert again.status_code == 409 and "not in doubt" in again.text


@pytest.mark.parametrize(
    "form",
    [
        {"answer": "done"},
        {"answer": "perhaps", "reason": "x"},
        {"answer": "not-done", "reason": "x", "result": "1"},
    ],
)
async def test_a_doubt_needs_an_answer_and_a_reason(
    shop: ShopConsole, form: dict[str, str]
) -> None:
    """What is missing is named, and nothing changes."""
    key = await shop.doubt()
    browser = await shop.browser()
    assert browser.post(f"/in-doubt/{key}", form).status_code == 422
    assert key in browser.get("/in-doubt").text


async def test_tools_show_their_use(shop: ShopConsole) -> None:
    """Calls, the share that did not end well, and times."""
    await _paid(shop)
    await shop.doubt()
    browser = await shop.browser()
    listed = browser.get("/tools").text
    assert "refund" in listed and "look_up" in listed and "50.0 %" in listed
    text = browser.get("/tools/refund").text
    assert "Cents to pay." in text and "always" in text


async def test_health_names_the_store_and_the_integrations(shop: ShopConsole) -> None:
    """What is under way, what is installed, and whether writes are stopped."""
    from agent_adapter.exec.upkeep import stop_writes

    await stop_writes(shop.store, by="os:root", reason="moving house")
    text = (await shop.browser()).get("/health").text
    for wanted in (shop.store.url, "generic", "Queued commands", "moving house"):
        assert wanted in text


@pytest.mark.parametrize(
    "path",
    ["/approvals/apr_0", "/runs/run_0", "/calls/call_0", "/channels/chn_0", "/tools/none", "/x"],
)
async def test_what_is_not_there_is_not_found(shop: ShopConsole, path: str) -> None:
    """With a page that says so."""
    answer = (await shop.browser()).get(path)
    assert answer.status_code == 404 and "Error" in answer.text


@pytest.mark.parametrize(
    "path",
    ["/runs?start=soon", "/approvals?state=odd", "/runs?ending=odd", "/channels?state=odd"],
)
async def test_a_query_that_makes_no_sense_is_refused(shop: ShopConsole, path: str) -> None:
    """And names what would."""
    assert (await shop.browser()).get(path).status_code == 422


async def test_pages_of_a_list_lose_nothing(shop: ShopConsole) -> None:
    """Page by page every run comes once."""
    for n in range(120):
        await shop.executor.run("look_up", {"order": "A"}, ctx=aa.ToolContext(run_id=f"run_{n:03}"))
    await shop.store.flush()
    browser, path, seen = await shop.browser(), "/runs", []
    while path:
        text = browser.get(path).text
        seen += [part.split('"')[0] for part in text.split('href="/runs/')[1:]]
        following = text.partition('rel="next" href="')[2].partition('"')[0]
        path = f"/runs{following}" if following else ""
    assert sorted(each for each in seen if each != "upkeep") == [f"run_{n:03}" for n in range(120)]
