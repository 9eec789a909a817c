"""`agent-adapter runs`, `approvals watch` and `verify`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_adapter as aa
from agent_adapter.cli import runs
from agent_adapter.store import ledger

from .conftest import Run


@pytest.fixture
def paid(run: Run, held: str) -> str:
    """The run of a refund that a person approved."""
    run("approvals", "approve", held, "--reason", "order checked")
    run("tools", "resume", "shop.py", held)
    found: str = run("approvals", "show", held, "--json").json["run_id"]
    return found


def test_list_counts_calls_and_questions(run: Run, held: str) -> None:
    """A run that waits for a person says so."""
    [line] = run("runs", "list", "--json").json
    assert (line["calls"], line["waiting"], line["unclear"]) == (0, 1, 0)
    assert line["run_id"] in run("runs", "list").out


def test_list_is_filtered(run: Run, paid: str) -> None:
    """By a tool's name, by how a call ended, by whom a run acts for."""
    run("tools", "call", "shop.py", "break_down", "how=kindly")
    assert len(run("runs", "list", "--json").json) == 2
    assert [line["run_id"] for line in run("runs", "list", "--tool", "refund", "--json").json] == [
        paid
    ]
    ended = run("runs", "list", "--ending", "no-effect", "--json").json
    assert [line["run_id"] for line in ended] != [paid]
    assert run("runs", "list", "--principal", "nobody").err.strip() == "no runs"


def test_show_is_a_timeline(run: Run, paid: str, held: str) -> None:
    """Each call with its arguments, its decision and its result."""
    out = run("runs", "show", paid).out
    for part in ('"order_id": "A1"', "5.00 paid back for A1", held, "os:ana", "order checked"):
        assert part in out
    [call] = run("runs", "show", paid, "--json").json["calls"]
    assert (call["tool"], call["ending"], call["approval"]["state"]) == ("refund", "ok", "taken")
    assert call["seconds"] >= 0


def test_show_makes_the_invisible_visible(run: Run) -> None:
    """A20: nothing in a result can steer the terminal, and nothing is cut."""
    long = "A1\x1b[2J" + "x" * 5000 + "END"
    run("tools", "call", "shop.py", "order_status", "--args", json.dumps({"order_id": long}))
    out = run("runs", "show", run("runs", "list", "--json").json[0]["run_id"]).out
    assert "\x1b" not in out
    assert "x" * 5000 + "END" in out


@pytest.mark.parametrize("command", ["show", "tail"])
def test_an_unknown_run(run: Run, held: str, command: str) -> None:
    """A run that is not there is named, with the command that lists them."""
    ran = run("runs", command, "run_none")
    assert ran.code == 1
    assert "no run run_none: `agent-adapter runs list`" in ran.err


def test_tail_prints_the_newest_entries(run: Run, paid: str) -> None:
    """One line each, oldest first."""
    lines = run("runs", "tail", paid, "-n", "2", "--for", "0").out.splitlines()
    assert [line.split()[3] for line in lines] == ["intent", "outcome"]
    assert run("runs", "tail", "-n", "0", "--for", "0").out == ""


@pytest.mark.anyio
async def test_tail_keeps_up_with_many_entries(capsys: pytest.CaptureFixture[str]) -> None:
    """However many are written between two looks, each is printed once."""
    store = aa.open_store("memory://", clock=lambda: 1000.0)
    tail = runs.LedgerFollower(None, 0, as_json=False, page_size=3)
    for look in range(3):
        for number in range(10):
            run_id = f"r{number}"
            await store.write(lambda tx, r=run_id: ledger.append(tx, r, "note", None, {}))
        capsys.readouterr()
        await tail.look(store)
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == (10 if look else 0)
    await store.aclose()


def test_verify_is_ledger_verify(run: Run, paid: str) -> None:
    """The short command says the same, with the same exit code."""
    assert run("verify").out == run("ledger", "verify").out
    assert run("verify", "--run", paid, "--json").json["ok"] is True


@pytest.fixture
def started(run: Run) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Processes of the command line that go on; ended with the test."""
    processes: dict[str, subprocess.Popen[str]] = {}
    yield processes
    for process in processes.values():
        process.kill()
        process.communicate()


def _start(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "agent_adapter.cli", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
    )


def test_tail_goes_on(run: Run, held: str, started: dict[str, subprocess.Popen[str]]) -> None:
    """What another process writes appears while it runs, each entry once."""
    tail = started["tail"] = _start("runs", "tail", "--json")
    assert tail.stdout is not None
    old = [json.loads(tail.stdout.readline())["kind"] for _ in range(2)]
    assert old == ["approval-requested", "refused"]
    run("approvals", "deny", held)
    assert json.loads(tail.stdout.readline())["kind"] == "approval-decided"


def test_watch_shows_questions_and_decisions(
    run: Run, held: str, started: dict[str, subprocess.Popen[str]]
) -> None:
    """What waits, what comes, and how it is decided."""
    watch = started["watch"] = _start("approvals", "watch", "--json")
    assert watch.stdout is not None
    assert json.loads(watch.stdout.readline())["id"] == held
    run("tools", "call", "shop.py", "refund", "order_id=B2", "amount=7")
    asked = json.loads(watch.stdout.readline())
    assert (asked["state"], asked["arguments"]["order_id"]) == ("pending", "B2")
    run("approvals", "deny", held, "--reviewer", "bo")
    denied = json.loads(watch.stdout.readline())
    assert (denied["id"], denied["state"], denied["reviewer"]) == (held, "denied", "cli:bo")


def test_watch_for_people(run: Run, held: str) -> None:
    """One line that names the record, the tool and the arguments; it ends after `--for`."""
    ran = run("approvals", "watch", "--for", "0")
    assert ran.code == 0
    assert ran.out.startswith(f"{held} pending refund")
    assert '"order_id": "A1"' in ran.out


def test_cancel_lets_nothing_of_a_run_begin(run: Run, paid: str) -> None:
    """The run is named, and an unknown one is an error that changes nothing."""
    assert run("runs", "cancel", paid, "--reason", "wrong customer", "--json").json["cancelled"]
    refused = run("runs", "cancel", "run_x")
    assert refused.code == 1 and "no run run_x" in refused.err


def test_a_waiting_run_is_visible_as_waiting(run: Run, held: str) -> None:
    """In the list, under its status, and in the timeline with the request that it waits for."""
    [line] = run("runs", "list", "--status", "waiting", "--json").json
    assert line["waiting"] == 1
    shown = run("runs", "show", line["run_id"])
    assert "refund waits for a person" in shown.out and held in shown.out
    data = run("runs", "show", line["run_id"], "--json").json
    assert [each["id"] for each in data["waiting"]] == [held]
    run("approvals", "deny", held)
    assert run("runs", "list", "--status", "waiting", "--json").json == []


def test_runs_are_found_as_people_remember_them(run: Run, held: str) -> None:
    """By a part of a name in any case, and by time."""
    run("tools", "call", "shop.py", "order_status", "order_id=A1", "--run", "Nightly-7")
    for found in (
        ("--name", "nightly"),
        ("--tool", "ORDER_st"),
        ("--since", "1h", "--tool", "ord"),
    ):
        [line] = run("runs", "list", *found, "--json").json
        assert line["run_id"] == "Nightly-7"
    assert run("runs", "list", "--until", "2020-01-01", "--json").json == []
    assert len(run("runs", "list", "--since", "2020-01-01T12:00Z", "--json").json) == 2
    bad = run("runs", "list", "--since", "soon")
    assert (bad.code, "--since 'soon' is no time" in bad.err) == (2, True)
    assert run("runs", "list", "--status", "ok", "--ending", "ok").code == 2
