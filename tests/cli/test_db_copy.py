"""`agent-adapter db copy`: a store moves between back ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import database

from .conftest import Run


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database; its key is looked for in this test's home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AGENT_ADAPTER_KEY_FILE", raising=False)
    with database() as found:
        yield found


def test_a_store_moves_to_postgresql_and_back(run: Run, held: str, url: str) -> None:
    """What waits for a person is found in each, and every chain verifies."""
    there = run("db", "copy", ".agent_adapter/state.db", url, "--json")
    assert there.code == 0, there.err
    assert there.json["rows"] > 0 and there.json["entries"] > 0
    assert held in run("approvals", "list", "--store", url).out
    assert run("ledger", "verify", "--store", url).code == 0
    assert run("approvals", "deny", held, "--store", url, "--reason", "no").code == 0
    back = run("db", "copy", url, "back.db")
    assert (back.code, back.out.startswith("copied: ")) == (0, True)
    assert run("ledger", "verify", "--store", "back.db").code == 0
    assert held not in run("approvals", "list", "--store", "back.db").out


def test_a_store_that_is_not_empty_is_refused(run: Run, held: str) -> None:
    """Nothing is added to it; the error says what it has."""
    assert run("db", "copy", ".agent_adapter/state.db", "other.db").code == 0
    again = run("db", "copy", ".agent_adapter/state.db", "other.db")
    assert again.code == 1
    assert "is not empty (it has rows in calls" in again.err or "approvals" in again.err


def test_a_store_with_another_key_is_refused(run: Run, held: str) -> None:
    """An empty store that was made before has a key of its own."""
    assert run("db", "upgrade", "--store", "made.db").code == 0
    refused = run("db", "copy", ".agent_adapter/state.db", "made.db")
    assert (refused.code, "another key" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("source", "to", "said"),
    [
        ("memory://", "x.db", "memory:// ends with its process"),
        (".agent_adapter/state.db", "memory://", "memory:// keeps nothing"),
        (".agent_adapter/state.db", "redis://h/0", "no store has the scheme 'redis'"),
    ],
)
def test_what_cannot_be_copied_is_told(
    run: Run, held: str, source: str, to: str, said: str
) -> None:
    """The error names the place."""
    refused = run("db", "copy", source, to)
    assert (refused.code, said in refused.err) == (1, True)


@pytest.mark.alters_store
def test_an_altered_store_is_not_copied(run: Run, held: str, tmp_path: Path) -> None:
    """The copy would vouch for what somebody changed."""
    import sqlite3

    with sqlite3.connect(tmp_path / ".agent_adapter" / "state.db") as file:
        file.execute("UPDATE approvals SET reason = 'changed'")
    file.close()
    refused = run("db", "copy", ".agent_adapter/state.db", "x.db")
    assert (refused.code, "does not verify" in refused.err) == (1, True)
    assert not (tmp_path / "x.db").exists()
