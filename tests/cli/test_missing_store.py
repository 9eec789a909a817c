"""A store that does not exist is an error, and is not created by looking at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

READING = (
    ("verify",),
    ("ledger", "verify"),
    ("ledger", "show"),
    ("ledger", "in-doubt"),
    ("approvals", "list"),
    ("approvals", "show", "apr_1"),
    ("approvals", "watch", "--for", "0"),
    ("runs", "list"),
    ("runs", "show", "run_1"),
    ("runs", "tail", "--for", "0"),
    ("channels", "list"),
    ("channels", "show", "chn_1"),
    ("channels", "tail", "chn_1"),
    ("channels", "replay", "chn_1"),
    ("writes", "status"),
    ("tokens", "list"),
    ("people", "list"),
    ("db", "backup", "copy.db"),
    ("db", "holds"),
    ("db", "retention"),
    ("db", "prune", "--dry-run"),
)
DECIDING = (
    ("approvals", "approve", "apr_1"),
    ("approvals", "deny", "apr_1"),
    ("approvals", "withdraw", "apr_1"),
    ("approvals", "confirm-time"),
    ("ledger", "resolve", "call_1", "--happened"),
    ("runs", "cancel", "run_1"),
    ("channels", "fork", "chn_1", "--at", "env_1"),
    ("tools", "resume", "shop.py", "apr_1"),
    ("writes", "stop"),
    ("writes", "allow"),
    ("tokens", "revoke", "kim"),
    ("people", "revoke", "kim"),
    ("db", "prune", "--older-than", "1d"),
    ("db", "release", "tenant", "acme"),
)


def _files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if file.name != "__pycache__"}


@pytest.mark.parametrize("command", READING + DECIDING, ids=" ".join)
def test_d9_no_such_store(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """D9: whatever only works on what is there names the store that is not, and creates nothing."""
    before = _files(tmp_path)
    ran = run(*command, "--store", "sqlite:///typo.db")
    assert ran.code == 1 and ran.out == "", ran
    assert "no such store" in ran.err and "sqlite:///typo.db" in ran.err
    assert _files(tmp_path) == before


@pytest.mark.parametrize("url", ["typo.db", "sqlite:///no/such/folder.db", "shop.py/typo.db"])
def test_d9_other_ways_to_name_a_store(run: Run, tmp_path: Path, url: str) -> None:
    """D9: a path, and a folder that does not exist."""
    before = _files(tmp_path)
    for command in (("verify",), ("db", "backup", "copy.db")):
        ran = run(*command, "--store", url)
        assert ran.code == 1 and "no such store" in ran.err and url in ran.err, ran
    assert _files(tmp_path) == before


def test_d9_the_default_store_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D9: without a URL, or with one from the environment, the answer is the same."""
    before = _files(tmp_path)
    for command in READING:
        assert "no such store" in run(*command).err
    monkeypatch.setenv("AGENT_ADAPTER_STORE", "sqlite:///typo.db")
    for command in (*READING, ("writes", "stop")):
        assert "typo.db" in run(*command).err
    assert _files(tmp_path) == before


def test_d9_an_empty_file_is_no_store(run: Run, tmp_path: Path) -> None:
    """D9: a file without content is not taken for a store that verifies."""
    (tmp_path / "empty.db").touch()
    ran = run("verify", "--store", "empty.db")
    assert (ran.code, "no such store" in ran.err) == (1, True)
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_d9_memory_ends_with_its_process(run: Run) -> None:
    """D9: nothing can be found in a store that begins with the command."""
    ran = run("verify", "--store", "memory://")
    assert (ran.code, "no such store" in ran.err) == (1, True)


def test_d9_as_json(run: Run) -> None:
    """D9: with `--json` the error is JSON, with a kind of its own."""
    ran = run("verify", "--store", "typo.db", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (1, "no-such-store")


@pytest.mark.parametrize(
    "command", [("tokens", "create", "kim"), ("people", "add", "kim"), ("db", "upgrade")]
)
def test_what_begins_a_store_creates_it(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """The first token, person or call of an installation makes its store."""
    assert run(*command, "--store", "new.db").code == 0
    assert (tmp_path / "new.db").stat().st_size > 0
