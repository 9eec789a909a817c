"""The inbox: what waits is shown whole and inert, and a word on it counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

import agent_adapter as aa
from agent_adapter.exec.approval.signing import create_key
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import ShopConsole, field

pytestmark = pytest.mark.anyio


async def test_a_request_is_shown_with_all_that_matters(shop: ShopConsole) -> None:
    """Tool, arguments, why it is asked, for whom, and when it expires."""
    await shop.ask("A17", 500)
    text = (await shop.browser()).get("/approvals").text
    for wanted in ("refund", "A17", "500", "this tool always asks", "ann", "run_1", "expires in"):
        assert wanted in text


async def test_an_approval_lets_the_call_run_and_names_who_gave_it(shop: ShopConsole) -> None:
    """The reviewer is the token's name, with how it is known."""
    id = await shop.ask()
    assert (await shop.browser("kim")).decide(id).status_code == 303
    record = await shop.record(id)
    assert (record.state, record.reviewer) == ("approved", "token:kim")
    assert await shop.executor.resume(id) == "paid 5"


async def test_a_denial_keeps_its_reason(shop: ShopConsole) -> None:
    """What the reviewer says is what the model reads."""
    id = await shop.ask()
    (await shop.browser()).decide(id, "denied", reason="wrong customer")
    with pytest.raises(aa.ApprovalDenied, match="wrong customer"):
        await shop.executor.resume(id)


async def test_an_edit_by_the_form_runs_as_edited(shop: ShopConsole) -> None:
    """Fields come from the tool's schema; one that is left alone stays as it is."""
    id = await shop.ask("A1", 900, note="line\r\nend")
    browser = await shop.browser()
    text = browser.get(f"/approvals/{id}").text
    assert "Cents to pay." in text
    seen = {name: field(text, name) for name in ("digest", "version")}
    form = seen | {"arg:order": "A1", "arg:amount": "300", "arg:note": '"line\\r\\nend"'}
    assert browser.post(f"/approvals/{id}/edit", form).status_code == 303
    await shop.executor.resume(id)
    assert shop.ran == [{"order": "A1", "amount": 300, "note": "line\r\nend", "lines": None}]


@pytest.mark.parametrize("sent", ["many", "1.5", "NaN", "true", '"3"'])
async def test_an_edit_that_does_not_fit_changes_nothing(shop: ShopConsole, sent: str) -> None:
    """The page comes back with the reason and with what was typed."""
    id = await shop.ask()
    browser = await shop.browser()
    text = browser.get(f"/approvals/{id}").text
    seen = {name: field(text, name) for name in ("digest", "version")}
    answer = browser.post(f"/approvals/{id}/edit", seen | {"arg:amount": sent})
    assert answer.status_code == 422
    assert "amount" in answer.text and "not a whole number" in answer.text
    assert (await shop.record(id)).state == "pending"


async def test_edits_are_validated_against_the_tool(shop: ShopConsole) -> None:
    """Raw JSON that the tool would refuse is refused here."""
    id = await shop.ask()
    browser = await shop.browser()
    text = browser.get(f"/approvals/{id}").text
    seen = {name: field(text, name) for name in ("digest", "version")}
    answer = browser.post(f"/approvals/{id}/edit", seen | {"raw": '{"order": "A1", "sum": 3}'})
    assert answer.status_code == 422
    assert "sum" in answer.text


async def test_a_second_word_is_stale(shop: ShopConsole) -> None:
    """Of two approvers who look at one record, the second is told that it was decided."""
    id = await shop.ask()
    kim, lee = await shop.browser("kim"), await shop.browser("lee")
    page = lee.get(f"/approvals/{id}").text
    kim.decide(id)
    seen = {name: field(page, name) for name in ("digest", "version")}
    answer = lee.post(f"/approvals/{id}/decide", {"verdict": "denied"} | seen)
    assert answer.status_code == 409
    assert "already approved by token:kim" in answer.text
    assert (await shop.record(id)).state == "approved"


@pytest.mark.parametrize("name", ["digest", "version"])
async def test_a_word_on_something_else_is_stale(shop: ShopConsole, name: str) -> None:
    """What was seen must be what is there."""
    id = await shop.ask()
    browser = await shop.browser()
    text = browser.get(f"/approvals/{id}").text
    seen = {each: field(text, each) for each in ("digest", "version")} | {name: "0" * 16}
    answer = browser.post(f"/approvals/{id}/decide", {"verdict": "approved"} | seen)
    assert answer.status_code == 409
    assert "has changed since it was shown" in answer.text


async def test_a_form_without_what_was_seen_is_refused(shop: ShopConsole) -> None:
    """Nobody approves blindly."""
    id = await shop.ask()
    browser = await shop.browser()
    answer = browser.post(f"/approvals/{id}/decide", {"verdict": "approved"})
    assert answer.status_code == 422
    assert (await shop.record(id)).state == "pending"


async def test_like_calls_are_decided_together(shop: ShopConsole) -> None:
    """One word for the same tool and arguments, chosen one by one."""
    ids = [await shop.ask(run=f"run_{n}") for n in range(3)]
    browser = await shop.browser()
    assert "Decide 3 identical requests at once: refund" in browser.get("/approvals").text
    marks = [
        f"{each.id}|{each.digest}|{each.version}" for each in await aa.Inbox(shop.store).list()
    ]
    browser.post("/approvals/alike", {"verdict": "approved", "record": marks[:2]})
    assert [(await shop.record(id)).state for id in ids] == ["approved", "approved", "pending"]


async def test_calls_that_differ_are_not_decided_together(shop: ShopConsole) -> None:
    """A different amount is a different question."""
    for n in (1, 2):
        await shop.ask(amount=n)
    marks = [
        f"{each.id}|{each.digest}|{each.version}" for each in await aa.Inbox(shop.store).list()
    ]
    browser = await shop.browser()
    answer = browser.post("/approvals/alike", {"verdict": "approved", "record": marks})
    assert answer.status_code == 422
    assert {each.state for each in await aa.Inbox(shop.store).list()} == {"pending"}


async def test_long_arguments_are_decided_where_they_are_whole(shop: ShopConsole) -> None:
    """A20: the list says how much it leaves out and takes no word; the record's page shows all."""
    id = await shop.ask(note="x" * 9_000 + "THE END")
    browser = await shop.browser()
    listed = browser.get("/approvals").text
    assert "more characters" in listed and "THE END" not in listed
    assert f"/approvals/{id}/decide" not in listed
    assert "THE END" in browser.get(f"/approvals/{id}").text


async def test_hostile_text_is_inert(shop: ShopConsole) -> None:
    """Markup is escaped, invisible and turning characters are written out, everywhere."""
    nasty = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\u202egnp.exe\u200b\x07'
    id = await shop.ask(order=nasty, principal=nasty, run="run_<b>")
    await shop.doubt(run="run_\u202e")
    browser = await shop.browser("ada", "admin")
    paths = ("/approvals", f"/approvals/{id}", f"/approvals/{id}/item", "/runs", "/in-doubt")
    for path in (*paths, "/runs/run_%3Cb%3E", "/tools", "/tools/refund", "/health"):
        answer = browser.get(path)
        assert answer.status_code == 200, path
        for bad in ("<script>alert", "<img", "\u202e", "\u200b", "\x07", "<b>"):
            assert bad not in answer.text, (path, bad)
    assert "\\u202egnp.exe\\u200b" in browser.get(f"/approvals/{id}").text


async def test_an_entry_alone_is_served_while_it_waits(shop: ShopConsole) -> None:
    """Open pages fetch what is new; what was decided meanwhile is not there any more."""
    id = await shop.ask()
    browser = await shop.browser()
    part = browser.get(f"/approvals/{id}/item")
    assert part.text.lstrip().startswith("<li") and "<html" not in part.text
    browser.decide(id, "denied")
    assert browser.get(f"/approvals/{id}/item").status_code == 404


async def test_without_a_registry_the_form_follows_the_values(
    shop: ShopConsole, store: SqliteStore
) -> None:
    """The recorded arguments' own types make the fields."""
    from agent_adapter.console import create_app

    shop.app = create_app(store)
    id = await shop.ask(lines=["a", "b"])
    text = (await shop.browser()).get(f"/approvals/{id}").text
    assert "without the tool" in text
    assert 'name="arg:amount" value="5" inputmode="numeric"' in text
    assert '<textarea id="arg-4" name="arg:lines"' in text


async def test_taint_is_shown_with_its_source(shop: ShopConsole) -> None:
    """The record names what was read, and since when."""
    ctx = aa.ToolContext(run_id="run_t", call_id="c1")
    await shop.executor.run("look_up", {"order": "A1"}, ctx=ctx)
    id = await shop.ask(run="run_t")
    text = (await shop.browser()).get(f"/approvals/{id}").text
    assert "look_up" in text and "run:run_t" in text


async def test_a_decision_here_is_signed_with_the_reviewers_key(
    store: SqliteStore, tmp_path: Path
) -> None:
    """Where signatures are demanded, the console signs for those whose key it holds alone."""
    (tmp_path / "keys").mkdir()
    key = create_key(tmp_path / "keys" / "kim.key")
    shop = ShopConsole(store, reviewer_keys=tmp_path / "keys")
    shop.executor.approval = aa.DeferredApproval(
        store, require_signed=True, reviewers={"kim": key.public}
    )
    id = await shop.ask()
    refused = (await shop.browser("lee")).decide(id)
    assert refused.status_code == 403 and "signature" in refused.text
    assert (await shop.browser("kim")).decide(id).status_code == 303
    assert await shop.executor.resume(id) == "paid 5"


async def test_whoever_asked_does_not_decide_a_quorum(
    shop: ShopConsole, store: SqliteStore
) -> None:
    """The principal is recognised under the name that the token gives them."""
    shop.executor.approval = aa.QuorumApproval(1, store)
    id = await shop.ask(principal="kim")
    answer = (await shop.browser("kim")).decide(id)
    assert answer.status_code == 403
    assert (await shop.browser("lee")).decide(id).status_code == 303


async def test_another_tenants_records_are_not_found(store: SqliteStore) -> None:
    """A15: a console of one tenant shows nothing of another's and decides nothing of it."""
    shop, other = ShopConsole(store), ShopConsole(store, tenant="other")
    id = await shop.ask()
    call = await shop.doubt()
    browser = await other.browser("kim", "admin")
    for path in (f"/approvals/{id}", "/runs/run_1", f"/calls/{call}"):
        assert browser.get(path).status_code == 404, path
    seen = {"digest": "x", "version": "y"}
    assert browser.post(f"/approvals/{id}/decide", {"verdict": "denied"} | seen).status_code == 404
    settled = browser.post(f"/in-doubt/{call}", {"answer": "done", "reason": "seen"})
    assert settled.status_code == 404


async def test_a_vote_of_several_leaves_the_request_in_the_list(
    shop: ShopConsole, store: SqliteStore
) -> None:
    """It goes on waiting for the others."""
    shop.executor.approval = aa.QuorumApproval(2, store)
    id = await shop.ask()
    kim, lee = await shop.browser("kim"), await shop.browser("lee")
    record = await shop.record(id)
    form = {"verdict": "approved", "digest": record.digest, "version": record.version}
    first = kim.post(f"/approvals/{id}/decide", form, **{"hx-request": "true"})
    assert id in first.text and (await shop.record(id)).state == "pending"
    record = await shop.record(id)
    form = {"verdict": "approved", "digest": record.digest, "version": record.version}
    second = lee.post(f"/approvals/{id}/decide", form, **{"hx-request": "true"})
    assert "data-gone" in second.text and (await shop.record(id)).state == "approved"


async def test_t1_a_pending_edit_is_shown_as_a_difference(shop: ShopConsole) -> None:
    """T1: list and page show the arguments that will run, and what an edit changed in them."""
    port = aa.QuorumApproval(2, shop.store)
    executor = aa.Executor(shop.registry, approval=port, store=shop.store)
    ctx = aa.ToolContext(run_id="run_1", principal="bob")
    with pytest.raises(aa.ApprovalPending) as caught:
        await executor.run("refund", {"order": "A1", "amount": 5}, ctx=ctx)
    id = caught.value.id
    edit = {"order": "EVIL", "amount": 5}
    await aa.Inbox(shop.store).approve(id, reviewer="os:ann", arguments=edit)
    browser = await shop.browser()
    for path in ("/approvals", f"/approvals/{id}"):
        text = browser.get(path).text
        assert "-  &#34;order&#34;: &#34;A1&#34;" in text
        assert "+  &#34;order&#34;: &#34;EVIL&#34;" in text and "1 of 2" in text
    assert 'value="EVIL"' in browser.get(f"/approvals/{id}").text


@pytest.mark.alters_store
@pytest.mark.parametrize("column", ["principal", "requester", "run_id", "thread_id", "tool"])
async def test_t13_ids_and_names_are_inert_and_bounded(shop: ShopConsole, column: str) -> None:
    """T13: whatever lies in the store, a page shows one visible line of 256 characters."""
    id = await shop.ask()
    browser = await shop.browser()
    for value in ("c\x1b[2J\nRun it?\u202e\u200b", "x" * 1_000_000):
        forged = {column: value}
        await shop.store.write(lambda tx, it=forged: tx.update("approvals", {"id": id}, it))
        for path in ("/approvals", f"/approvals/{id}"):
            text = browser.get(path).text
            assert not set("\x1b\u202e\u200b") & set(text) and "\nRun it?" not in text
            assert "x" * 300 not in text.replace("/runs/" + "x" * 1_000_000, "")
