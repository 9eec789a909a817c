"""Options that contradict each other are refused: no value wins silently."""

from __future__ import annotations

import pytest

from .conftest import Run


@pytest.fixture
def doubt(run: Run) -> str:
    """The key of a write with unknown outcome."""
    run("tools", "call", "shop.py", "break_down", "how=badly")
    key: str = run("ledger", "in-doubt", "--json").json[0]["call_key"]
    return key


@pytest.mark.parametrize(
    "flags",
    [
        ("--happened", "--not-happened"),
        ("--not-happened", "--happened"),
        ("--happened", "--result", "1", "--not-happened"),
        ("--happened", "--result", "1", "--result", "2"),
        ("--happened", "--reason", "a", "--reason", "b"),
    ],
    ids=" ".join,
)
def test_d10_resolve_refuses_both_answers(run: Run, doubt: str, flags: tuple[str, ...]) -> None:
    """D10: with two answers the call stays in doubt, in whatever order they are given."""
    ran = run("ledger", "resolve", doubt, *flags)
    assert ran.code == 2, ran
    assert len(ran.err.splitlines()) == 1
    assert run("ledger", "in-doubt").code == 4


@pytest.mark.parametrize(
    "options",
    [
        ("approve", "--args", '{"order_id": "A1", "amount": 1}', "--args", "{}"),
        ("approve", "--args", '{"order_id": "A1", "amount": 1, "amount": 1000}'),
        ("approve", "--reviewer", "ana", "--reviewer", "bo"),
        ("approve", "--tenant", "a", "--tenant", "b"),
        ("deny", "--reason", "a", "--reason=b"),
        ("withdraw", "--run", "run_1"),
        ("withdraw", "--conversation", "c"),
    ],
    ids=" ".join,
)
def test_d10_a_decision_has_one_meaning(run: Run, held: str, options: tuple[str, ...]) -> None:
    """D10: an option or a key that is given twice decides nothing."""
    command, *rest = options
    ran = run("approvals", command, held, *rest)
    assert ran.code == 2, ran
    assert run("approvals", "show", held, "--json").json["state"] == "pending"


@pytest.mark.parametrize(
    "command",
    [
        ("db", "prune", "--older-than", "90d", "--older-than", "1d"),
        ("db", "retention", "--runs", "90d", "--runs", "keep"),
        ("people", "link", "kim", "--role", "viewer", "--role", "admin"),
        ("tokens", "create", "kim", "--role", "viewer", "--role", "admin"),
        ("writes", "stop", "--store", "a.db", "--store", "b.db"),
        ("serve", "--port", "0", "--host", "127.0.0.1", "--host", "127.0.0.2"),
        (
            *("serve", "--port", "0", "--trusted-proxy", "127.0.0.1"),
            *("--proxy-role", "kim=viewer", "--proxy-role", "kim=admin"),
        ),
        (
            *("serve", "--port", "0", "--trusted-proxy", "127.0.0.1"),
            *("--proxy-role", "viewer", "--proxy-role", "admin"),
        ),
        ("mcp", "accept", "files", "--hash", "a" * 16, "--hash", "b" * 16),
        ("demo", "--serve", "--json"),
    ],
    ids=" ".join,
)
def test_d10_siblings(run: Run, held: str, command: tuple[str, ...]) -> None:
    """D10: no other command takes the last of two values."""
    ran = run(*command)
    assert ran.code == 2, ran
    assert len(ran.err.splitlines()) == 1


def test_a_flag_may_be_repeated(run: Run, held: str) -> None:
    """A flag that is given twice says the same twice; repeatable options stay repeatable."""
    assert run("approvals", "list", "--json", "--json").code == 0
    made = run("tokens", "create", "kim", "--tenant", "a", "--tenant", "b", "--json")
    assert made.json["tenants"] == ["a", "b"]
