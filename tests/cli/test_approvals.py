"""`agent-adapter approvals`."""

from __future__ import annotations

import asyncio
import json

import pytest

from agent_adapter.store import open_store

from .conftest import Run


def test_list_shows_what_waits(run: Run, held: str) -> None:
    """The inbox names the tool, the arguments and the deadline."""
    ran = run("approvals", "list")
    assert ran.code == 0
    assert held in ran.out
    assert "refund" in ran.out


def test_an_empty_inbox_says_so(run: Run) -> None:
    """Nothing waiting is not an error."""
    run("db", "upgrade")
    ran = run("approvals", "list")
    assert (ran.code, ran.out, ran.err.strip()) == (0, "", "no pending approvals")


def test_approve_records_the_system_s_user(run: Run, held: str) -> None:
    """Without `--reviewer` the operating system says who decides, and the record says so."""
    record = run("approvals", "approve", held, "--reason", "order checked", "--json").json
    assert (record["state"], record["reviewer"]) == ("approved", "os:ana")
    assert record["reason"] == "order checked"


def test_a_stated_reviewer_is_marked_as_stated(run: Run, held: str) -> None:
    """A name from `--reviewer` is only as good as whoever typed it, and the record says so."""
    record = run("approvals", "deny", held, "--reviewer", "bo", "--json").json
    assert (record["state"], record["reviewer"]) == ("denied", "cli:bo")


def test_a_decision_is_final(run: Run, held: str) -> None:
    """A second decision is refused, and changes nothing."""
    run("approvals", "deny", held)
    ran = run("approvals", "approve", held)
    assert ran.code == 1
    assert "already denied" in ran.err
    assert run("approvals", "show", held, "--json").json["state"] == "denied"


def test_edited_arguments_run_instead(run: Run, held: str) -> None:
    """`--args` replaces the arguments; both versions stay in the record."""
    edits = '{"order_id": "A1", "amount": 3}'
    run("approvals", "approve", held, "--args", edits)
    ran = run("tools", "resume", "shop.py", held)
    assert ran.out.strip() == "3.00 paid back for A1"
    record = run("approvals", "show", held, "--json").json
    assert record["arguments"]["amount"] == 5
    assert record["edited"]["amount"] == 3


@pytest.mark.parametrize(
    ("hidden", "seen"),
    [
        ("\u202etxt.exe", "\\u202e"),
        ("a\u200bb", "\\u200b"),
        ("\x1b[2J", "\\u001b"),
        ("\ufe0f", "\\ufe0f"),
        ("\u3164", "\\u3164"),
        ("\U000e0041", "\\U000e0041"),
        ("[red]x[/red]", "[red]x[/red]"),
    ],
)
def test_show_makes_the_invisible_visible(run: Run, hidden: str, seen: str) -> None:
    """A20: nothing in an argument can hide, reorder or colour what a reviewer reads."""
    args = json.dumps({"order_id": f"A1{hidden}", "amount": 1})
    run("tools", "call", "shop.py", "refund", "--args", args)
    record = run("approvals", "list", "--json").json[0]["id"]
    out = run("approvals", "show", record).out
    assert seen in out
    if seen.startswith("\\"):
        assert hidden not in out


def test_show_cuts_nothing(run: Run) -> None:
    """A20: a long value is shown to its end, on one unbroken line."""
    long = "x" * 5000 + "THE END"
    run("tools", "call", "shop.py", "refund", "--args", json.dumps({"order_id": long, "amount": 1}))
    record = run("approvals", "list", "--json").json[0]["id"]
    assert long in run("approvals", "show", record).out
    assert "characters: see `approvals show`" in " ".join(run("approvals", "list").out.split())


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("approvals", "show", "apr_none"), 1, "no approval apr_none"),
        (("approvals", "approve", "apr_none"), 1, "no approval apr_none"),
        (("approvals", "approve", "apr_x", "--reviewer", " "), 2, "--reviewer is empty"),
        (("approvals", "approve", "apr_x", "--args", "3"), 2, "not a JSON object"),
        (("approvals", "list", "--state", "odd"), 2, "odd"),
        (("approvals", "list", "--limit", "0"), 2, "limit"),
        (("approvals", "list", "--store", "ftp://x"), 1, "ftp"),
    ],
)
def test_bad_input_says_what_and_why(
    run: Run, held: str, args: tuple[str, ...], code: int, said: str
) -> None:
    """Each refusal is one line that names the thing."""
    ran = run(*args)
    assert ran.code == code, ran
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_withdraw_takes_a_question_back(run: Run, held: str) -> None:
    """The record says who withdrew it and why; it cannot be approved any more."""
    ran = run("approvals", "withdraw", held, "--reason", "order cancelled", "--reviewer", "bo")
    assert (ran.code, ran.out.strip()) == (0, f"withdrawn by cli:bo: {held}")
    record = run("approvals", "show", held, "--json").json
    assert (record["state"], record["reason"]) == ("withdrawn", "order cancelled")
    assert run("approvals", "approve", held).code == 1
    assert held in run("approvals", "list", "--state", "withdrawn").out


def test_withdraw_takes_one_way_to_say_what(run: Run, held: str) -> None:
    """An id, a run or a conversation: none or two of them is refused, and changes nothing."""
    assert run("approvals", "withdraw").code == 2
    assert run("approvals", "withdraw", held, "--run", "run_1").code == 2
    assert run("approvals", "withdraw", "--run", "nobody's", "--json").json == []
    assert run("approvals", "show", held, "--json").json["state"] == "pending"


def test_confirm_time_says_how_far_the_clock_was_ahead(run: Run, held: str) -> None:
    """On a clock that did not jump it changes nothing."""
    ran = run("approvals", "confirm-time", "--reviewer", "bo")
    assert (ran.code, ran.out.strip()) == (0, "confirmed by cli:bo; the clock was 0 s ahead")
    assert run("approvals", "approve", held).code == 0


def test_t5_a_bad_edit_is_refused_and_the_record_waits(run: Run, held: str) -> None:
    """T5: an unknown argument is named, and nothing is changed."""
    ran = run("approvals", "approve", held, "--args", '{"amont": 4}')
    assert ran.code != 0 and "amont" in ran.err
    assert run("approvals", "show", held, "--json").json["state"] == "pending"


EVIL = "c\x1b[2J\nRun it? [y/N]\r\u202e\u200b"


async def _forge(id: str, **values: object) -> int:
    store = open_store()
    try:
        return await store.write(lambda tx: tx.update("approvals", {"id": id}, values))
    finally:
        await store.aclose()


@pytest.mark.alters_store
@pytest.mark.parametrize("column", ["principal", "run_id", "thread_id", "tool"])
@pytest.mark.parametrize("value", [EVIL, "x" * 1_000_000], ids=["hidden", "long"])
def test_t13_ids_and_names_are_inert_in_lists_and_records(
    run: Run, held: str, column: str, value: str
) -> None:
    """T13: whatever lies in the store, a terminal gets one visible line of 256 characters."""
    assert asyncio.run(_forge(held, **{column: value})) == 1
    for args in (("list",), ("show", held)):
        ran = run("approvals", *args)
        assert ran.code == 0 and held in ran.out
        assert not set("\x1b\r\u202e\u200b") & set(ran.out)
        assert "\nRun it?" not in ran.out and len(ran.out) < 10_000


def test_respond_answers_in_place_of_the_call(run: Run, held: str) -> None:
    """The text is the call's result, at once: nothing runs and nothing is held."""
    record = run("approvals", "respond", held, "--text", "ask Bo instead", "--json").json
    assert (record["state"], record["answer"]) == ("answered", "ask Bo instead")
    assert record["released_at"] is None
    assert run("tools", "resume", "shop.py", held).out.strip() == "ask Bo instead"
    assert "ask Bo instead" in run("approvals", "show", held).out
    assert run("verify").code == 0


@pytest.mark.parametrize("options", [[], ["--text", "a", "--value", "1"], ["--value", "{"]])
def test_respond_needs_one_answer(run: Run, held: str, options: list[str]) -> None:
    """No answer, two answers and a value that is not JSON are usage errors; nothing is decided."""
    assert run("approvals", "respond", held, *options).code == 2
    assert run("approvals", "show", held, "--json").json["state"] == "pending"
