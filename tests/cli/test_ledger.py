"""`agent-adapter ledger`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def doubt(run: Run) -> str:
    """The key of a write whose end nobody knows."""
    run("tools", "call", "shop.py", "break_down", "how=badly", "--run", "run_1")
    calls = run("ledger", "in-doubt", "--json")
    assert calls.code == 4
    key: str = calls.json[0]["call_key"]
    return key


def test_show_lists_entries_of_one_run(run: Run, doubt: str) -> None:
    """The entries of a run are shown in order, as they were written."""
    entries = run("ledger", "show", "run_1", "--json").json
    assert [entry["kind"] for entry in entries] == ["intent", "outcome"]
    assert {entry["call_key"] for entry in entries} == {doubt}
    assert "break_down" in run("ledger", "show", "run_1").out


def test_verify_passes_over_an_untouched_ledger(run: Run, doubt: str) -> None:
    """A ledger as it was written verifies, and the answer says what was looked at."""
    assert run("ledger", "verify").code == 0
    assert run("ledger", "verify", "--json").json["ok"] is True
    assert run("ledger", "verify", "--run", "run_1").code == 0


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE ledger SET body = replace(body, 'unknown', 'ok')",
        "UPDATE ledger SET body = CAST(replace(body, 'unknown', 'ok') AS BLOB)",
        "UPDATE payloads SET data = 'x'",
        "DELETE FROM ledger WHERE seq = 1",
        "DELETE FROM ledger WHERE seq = 2",
        "UPDATE ledger SET seq = 3 - seq",
    ],
)
def test_verify_finds_what_was_changed(
    run: Run, doubt: str, tmp_path: Path, tampering: str
) -> None:
    """A28: an entry edited, deleted, re-ordered or cut off is exit code 4."""
    if "3 - seq" in tampering:
        tampering = "UPDATE ledger SET seq = -seq; UPDATE ledger SET seq = 3 + seq"
    with sqlite3.connect(tmp_path / ".agent_adapter" / "state.db") as database:
        database.executescript(tampering)
    database.close()
    ran = run("ledger", "verify")
    assert ran.code == 4
    assert "run_1" in ran.out


def test_in_doubt_lists_the_write(run: Run, doubt: str) -> None:
    """A write that failed in an unknown way is listed, with code 4."""
    ran = run("ledger", "in-doubt")
    assert (ran.code, "break_down" in ran.out) == (4, True)


def test_nothing_in_doubt_is_code_0(run: Run) -> None:
    """An empty list is good news."""
    run("db", "upgrade")
    ran = run("ledger", "in-doubt")
    assert (ran.code, ran.err.strip()) == (0, "no writes with unknown outcome")


@pytest.mark.parametrize("answer", ["--happened", "--not-happened"])
def test_resolve_settles_the_write(run: Run, doubt: str, answer: str) -> None:
    """A person's answer ends the doubt, and the ledger names them."""
    ran = run("ledger", "resolve", doubt, answer, "--reason", "seen in the log")
    assert ran.code == 0, ran
    assert run("ledger", "in-doubt").code == 0
    entry = run("ledger", "show", "run_1", "--json").json[-1]
    assert (entry["kind"], entry["facts"]["reviewer"]) == ("resolved", "os:ana")
    assert run("ledger", "verify").code == 0


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("ledger", "show", "run_none"), 1, "no run run_none"),
        (("ledger", "verify", "--run", "run_none"), 1, "no run run_none"),
        (("ledger", "resolve", "call_none", "--happened"), 1, "no call call_none"),
        (("ledger", "resolve", "call_none"), 2, "--happened"),
        (("ledger", "resolve", "call_x", "--not-happened", "--result", "1"), 2, "--result"),
        (("ledger", "resolve", "call_x", "--happened", "--result", "{"), 2, "--result is not JSON"),
    ],
)
def test_bad_input_says_what_and_why(
    run: Run, doubt: str, args: tuple[str, ...], code: int, said: str
) -> None:
    """Each refusal is one line that names the thing."""
    ran = run(*args)
    assert ran.code == code, ran
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
