"""The desk: undo, an answer in place of a call, confirmation, bulk with a preview, searches."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.console import create_app
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import Browser, ShopConsole, field

pytestmark = pytest.mark.anyio


@pytest.fixture
def slow(store: SqliteStore) -> ShopConsole:
    """A shop whose console lets people undo for half a minute."""
    return ShopConsole(store, undo_window=30)


def _seen(browser: Browser, id: str) -> dict[str, str]:
    text = browser.get(f"/approvals/{id}").text
    return {name: field(text, name) for name in ("digest", "version")}


async def test_a_decision_of_a_page_can_be_undone(slow: ShopConsole) -> None:
    """The record is held, its page offers to undo, and after that it waits as before."""
    id, browser = await slow.ask(), await slow.browser()
    assert browser.decide(id, reason="checked").headers["location"] == f"/approvals/{id}"
    assert (await slow.record(id)).released_at is not None
    assert "Undo" in browser.get(f"/approvals/{id}").text
    assert browser.post(f"/approvals/{id}/undo", {}).status_code == 303
    assert (await slow.record(id)).state == "pending"


async def test_another_person_does_not_undo_it(slow: ShopConsole) -> None:
    """They are told whose decision it is."""
    id = await slow.ask()
    (await slow.browser("kim")).decide(id)
    answer = (await slow.browser("lee")).post(f"/approvals/{id}/undo", {})
    assert answer.status_code == 409 and "token:kim" in answer.text
    assert (await slow.record(id)).state == "approved"


@pytest.mark.parametrize("window", [-1, 61, float("nan")])
async def test_a_window_that_is_none(store: SqliteStore, window: float) -> None:
    """It is refused when the console is made."""
    with pytest.raises(aa.AgentAdapterError, match="undo_window"):
        create_app(store, undo_window=window)


async def test_an_unused_approval_is_withdrawn(shop: ShopConsole) -> None:
    """Its page has the form, and nothing runs on it any more."""
    id, browser = await shop.ask(), await shop.browser()
    browser.decide(id)
    assert "Withdraw" in browser.get(f"/approvals/{id}").text
    assert browser.post(f"/approvals/{id}/withdraw", {"reason": "wrong"}).status_code == 303
    with pytest.raises(aa.ApprovalWithdrawn, match="wrong"):
        await shop.executor.resume(id)


async def test_an_answer_in_place_of_the_call(shop: ShopConsole) -> None:
    """The text is the result; without a text nothing is decided."""
    id, browser = await shop.ask(), await shop.browser()
    assert browser.decide(id, "answered", reason=" ").status_code == 422
    assert (await shop.record(id)).state == "pending"
    assert browser.decide(id, "answered", reason="ask Bo\r\ninstead").status_code == 303
    assert await shop.executor.resume(id) == "ask Bo\ninstead"
    assert shop.ran == []


async def _irreversible(shop: ShopConsole) -> str:
    spec = shop.registry.get("refund").replace(name="wipe", irreversible=True)
    ctx = aa.ToolContext(run_id="run_wipe")
    with pytest.raises(aa.ApprovalPending) as caught:
        await shop.executor.run_spec(spec, {"order": "A1", "amount": 5}, ctx)
    return str(caught.value.id)


async def test_what_cannot_be_undone_is_confirmed(shop: ShopConsole) -> None:
    """The first approval asks again, in the list and on the page; a denial does not."""
    id, browser = await _irreversible(shop), await shop.browser()
    assert "cannot be undone" in browser.get("/approvals").text
    asked = browser.decide(id)
    assert asked.status_code == 200 and "Approve for good" in asked.text
    seen = _seen(browser, id) | {"verdict": "approved"}
    item = browser.post(f"/approvals/{id}/decide", seen, **{"hx-request": "true"})
    assert "Approve for good" in item.text and (await shop.record(id)).state == "pending"
    assert browser.decide(id, confirmed="1").status_code == 303
    assert (await shop.record(id)).state == "approved"
    other = await _irreversible_again(shop)
    assert browser.decide(other, "denied").status_code == 303


async def _irreversible_again(shop: ShopConsole) -> str:
    spec = shop.registry.get("refund").replace(name="wipe2", irreversible=True)
    with pytest.raises(aa.ApprovalPending) as caught:
        await shop.executor.run_spec(spec, {"order": "A2", "amount": 5}, aa.ToolContext())
    return str(caught.value.id)


async def test_bulk_shows_what_differs_and_decides_what_was_shown(slow: ShopConsole) -> None:
    """A preview decides nothing; each argument that differs is in it; all can be undone."""
    ids = [await slow.ask(f"B{n}", amount=7, run=f"run_{n}") for n in range(3)]
    browser = await slow.browser()
    marks = await slow.seen_records()
    page = browser.post("/approvals/bulk", {"record": marks[:2]}).text
    assert "nothing is decided yet" in page and "B0" in page and "B1" in page and "B2" not in page
    assert "Approve these 2" in page and page.index("The same in all") < page.index("What differs")
    assert {(await slow.record(id)).state for id in ids} == {"pending"}
    form = {"record": marks[:2], "verdict": "approved"}
    done = browser.post("/approvals/bulk/decide", form)
    assert "2 approved" in done.text and "Undo all" in done.text
    assert [(await slow.record(id)).state for id in ids] == ["approved", "approved", "pending"]
    assert browser.post("/approvals/bulk/undo", {"record": ids[:2]}).status_code == 303
    assert {(await slow.record(id)).state for id in ids} == {"pending"}


async def test_bulk_over_the_whole_result(shop: ShopConsole) -> None:
    """All that a search finds is in the preview, not only the page that was shown."""
    for n in range(30):
        await shop.ask(f"{'odd' if n % 2 else 'even'}-{n}", run=f"run_{n}")
    page = (await shop.browser()).post("/approvals/bulk", {"all": "1", "q": "ODD"}).text
    assert "Approve these 15" in page and "odd-29" in page and "even-" not in page


async def test_bulk_of_two_tools_are_two_decisions(shop: ShopConsole) -> None:
    """The preview groups by what will run; one form never mixes them."""
    await shop.ask()
    await _irreversible(shop)
    browser = await shop.browser()
    marks = await shop.seen_records()
    assert browser.post("/approvals/bulk", {"record": marks}).text.count("data-group") == 2
    mixed = browser.post("/approvals/bulk/decide", {"record": marks, "verdict": "approved"})
    assert mixed.status_code == 422
    assert {each.state for each in await aa.Inbox(shop.store).list()} == {"pending"}


async def test_a_stale_record_of_a_bulk_is_told(shop: ShopConsole) -> None:
    """What changed since the preview is not decided, and the others are."""
    ids = [await shop.ask(f"B{n}", run=f"run_{n}") for n in range(2)]
    browser, marks = await shop.browser(), await shop.seen_records()
    await aa.Inbox(shop.store).deny(ids[0], reviewer="lee")
    done = browser.post("/approvals/bulk/decide", {"record": marks, "verdict": "approved"}).text
    assert "1 approved" in done and "already denied by lee" in done


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=lamps", ["a"]),
        ("q=LAMPS+ann", ["a"]),
        ("q=nothing", []),
        ("person=BOB", ["b"]),
        ("run=_A", ["a"]),
        ("tool=FUND", ["a", "b"]),
        ("risk=write", ["a", "b"]),
        ("risk=irreversible", []),
        ("q=%22quoted%22", ["b"]),
    ],
)
async def test_searches(shop: ShopConsole, query: str, found: list[str]) -> None:
    """Words anywhere in a record, in any case; filters narrow it; counts say how many."""
    ids = {
        "a": await shop.ask("A1", note="forty Lamps", run="run_a", principal="ann"),
        "b": await shop.ask("B1", note='a "quoted" word', run="run_b", principal="Bob"),
    }
    text = (await shop.browser()).get(f"/approvals?{query}").text
    assert [name for name, id in ids.items() if f'id="{id}"' in text] == found
    assert f"<span data-found>{len(found)}</span>" in text


async def test_pages_go_forth_and_back(shop: ShopConsole) -> None:
    """Sorted by what expires first, 25 on a page, each record once, and back the same way."""
    ids = [await shop.ask(f"P{n}", run=f"run_{n}") for n in range(60)]
    browser = await shop.browser()
    pages, path = [], "/approvals"
    while path:
        text = browser.get(path).text
        pages.append([id for id in ids if f'id="{id}"' in text])
        path = _link(text, "next")
    assert [len(each) for each in pages] == [25, 25, 10]
    assert sorted(id for each in pages for id in each) == sorted(ids)
    back = browser.get(_link(text, "prev")).text
    assert [id for id in ids if f'id="{id}"' in back] == pages[1]


def _link(text: str, rel: str) -> str:
    import html
    import re

    found = re.search(rf'<a rel="{rel}" href="([^"]*)"', text)
    return html.unescape(found[1]) if found else ""


async def test_views_are_kept_for_their_person(shop: ShopConsole) -> None:
    """A search gets a name, is a link in the inbox, and can be removed; others do not see it."""
    kim, lee = await shop.browser("kim"), await shop.browser("lee")
    saved = {"name": "payments", "query": "?q=refund&state=pending&evil=1"}
    assert kim.post("/approvals/views", saved).status_code == 303
    text = kim.get("/approvals").text
    assert 'href="/approvals?q=refund&amp;state=pending">payments' in text
    assert "payments" not in lee.get("/approvals").text
    lee.post("/approvals/views/drop", {"id": field(text, "id")})
    assert "payments" in kim.get("/approvals").text
    kim.post("/approvals/views/drop", {"id": field(text, "id")})
    assert "payments" not in kim.get("/approvals").text
    assert kim.post("/approvals/views", {"name": " ", "query": ""}).status_code == 422


async def test_a_decided_record_is_known_to_open_pages(shop: ShopConsole) -> None:
    """A page asks which of its records wait no more, in this tenant only."""
    ids = [await shop.ask(run=f"run_{n}") for n in range(2)]
    browser = await shop.browser()
    browser.decide(ids[0])
    asked = "&".join(f"id={id}" for id in (*ids, "apr_x"))
    assert browser.get(f"/approvals/decided?{asked}").json() == {"decided": [ids[0], "apr_x"]}


async def test_simple_types_have_simple_fields(store: SqliteStore) -> None:
    """Text that may be null, enums, dates, numbers with limits; errors stand at their fields."""
    from datetime import date
    from typing import Annotated, Literal

    from pydantic import Field

    registry = aa.ToolRegistry()

    @registry.tool(confirm=True)
    def book(
        day: date,
        seats: Annotated[int, Field(ge=1, le=9)],
        note: str | None = None,
        size: Literal["s", "l"] | None = None,
        level: Literal[1, 2] = 1,
    ) -> str:
        """Book a table."""
        return f"{day} {seats} {note!r} {size!r} {level}"

    shop = ShopConsole(store)
    shop.registry = registry
    shop.executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    shop.app = create_app(store, registry=registry, undo_window=0)
    with pytest.raises(aa.ApprovalPending) as caught:
        await shop.executor.run("book", {"day": "2026-12-24", "seats": 2}, ctx=_run())
    id, browser = caught.value.id, await shop.browser()
    text = browser.get(f"/approvals/{id}").text
    for wanted in (
        'type="date"',
        "at least 1, at most 9",
        'name="none:note"',
        "<option>s</option>",
    ):
        assert wanted in text, wanted
    form: dict[str, Any] = _seen(browser, id) | {"marks": "1", "arg:day": "2026-12-31"}
    form |= {"arg:seats": "12", "arg:note": "window", "arg:size": "l", "arg:level": "2"}
    refused = browser.post(f"/approvals/{id}/edit", form)
    assert refused.status_code == 422 and 'aria-invalid="true"' in refused.text
    assert browser.post(f"/approvals/{id}/edit", form | {"arg:seats": "3"}).status_code == 303
    assert await shop.executor.resume(id) == "2026-12-31 3 'window' 'l' 2"


def _run() -> aa.ToolContext:
    return aa.ToolContext(run_id="run_book")


async def test_not_given_is_null(shop: ShopConsole) -> None:
    """The mark beside a text makes it `null`; an empty text without it is an empty text."""
    from agent_adapter.console.argument_form import fields_of, read_form

    schema = {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    for kept, form, wanted in (
        ({"a": "x"}, {"arg:a": "x", "none:a": "1", "marks": "1"}, {"a": None}),
        ({"a": "x"}, {"arg:a": "", "marks": "1"}, {"a": ""}),
        ({"a": None}, {"arg:a": "", "none:a": "1", "marks": "1"}, {"a": None}),
        ({"a": None}, {"arg:a": "y", "none:a": "1", "marks": "1"}, {"a": "y"}),
        ({"a": None}, {"arg:a": "", "marks": "1"}, {"a": ""}),
        ({}, {"arg:a": "", "none:a": "1", "marks": "1"}, {}),
    ):
        assert read_form(kept, fields_of(kept, schema), form) == wanted, (kept, form)
