"""`agent-adapter writes` and `agent-adapter db`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent_adapter.store.sql.keyfile import file_key
from agent_adapter.store.sql.migrate import upgrade
from agent_adapter.store.sql.revisions import HEAD
from agent_adapter.store.sqlite.inspection import APPLICATION_ID

from .conftest import Run


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A store with the first schema that there was."""
    path = tmp_path / "old.db"
    file_key(path.with_name("old.db.key"), may_create=True)
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        upgrade(connection, "0001")
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    return str(path)


PAY = ("tools", "call", "shop.py", "break_down", "how=kindly")


def test_writes_are_stopped_and_allowed(run: Run) -> None:
    """A stopped write is refused with the reason; reads go on; `status` says so."""
    assert run("writes", "stop", "--reason", "wrong prices").out == (
        "writes are stopped: wrong prices\n"
    )
    refused = run(*PAY)
    assert (refused.code, "all writes are stopped (wrong prices)" in refused.err) == (1, True)
    assert run("tools", "call", "shop.py", "order_status", "order_id=A1").code == 0
    assert run("writes", "status", "--json").json == {"stopped": True, "reason": "wrong prices"}
    assert run("writes", "allow").out == "writes are allowed\n"
    assert "nothing was done" in run(*PAY).err
    assert run("ledger", "verify").code == 0


def test_backup_can_be_used_as_a_store(run: Run, held: str, tmp_path: Path) -> None:
    """The copy has what waited in the original."""
    written = run("db", "backup", "copy.db", "--json")
    assert written.json["backup"] == str(tmp_path / "copy.db")
    assert held in run("approvals", "list", "--store", "copy.db").out
    again = run("db", "backup", "copy.db")
    assert (again.code, "exists already" in again.err) == (1, True)


def test_upgrade_says_what_the_schema_was(run: Run, held: str) -> None:
    """A store that is up to date stays as it is; a new one is made with the newest schema."""
    told = run("db", "upgrade", "--json").json
    assert told["before"] == told["after"] == HEAD
    assert run("db", "upgrade", "--store", "new.db", "--json").json["before"] is None
    assert run("db", "upgrade").out == f"the schema is the newest: {HEAD}\n"


def test_upgrade_brings_an_old_store_forward(run: Run, old: str) -> None:
    """What an earlier version of the library wrote is there afterwards."""
    told = run("db", "upgrade", "--store", old, "--json").json
    assert (told["before"], told["after"]) == ("0001", HEAD)
    assert run("db", "upgrade", "--store", old, "--json").json["before"] == HEAD


def test_only_a_file_is_upgraded(run: Run) -> None:
    """A store without a file has no schema."""
    ran = run("db", "upgrade", "--store", "memory://")
    assert (ran.code, "memory:// has no schema" in ran.err) == (1, True)


def test_prune_counts_and_deletes(run: Run) -> None:
    """`--dry-run` deletes nothing; what is newer than the age stays."""
    run(*PAY)
    assert run("db", "prune", "--older-than", "1d").out == "0 runs deleted\n"
    assert run("db", "prune", "--older-than", "0m", "--dry-run").out == "1 runs would be deleted\n"
    assert run("db", "prune", "--older-than", "0m", "--json").json == {"runs": 1, "deleted": True}
    entry = run("ledger", "show", "upkeep", "--json").json[-1]
    assert (entry["kind"], entry["facts"]["reviewer"]) == ("pruned", "os:ana")


@pytest.mark.parametrize("age", ["", "90", "d", "-1d", "1y", "1 d", "999999999d"])
def test_an_age_is_a_number_and_a_unit(run: Run, age: str) -> None:
    """Anything else is a usage error that shows how."""
    ran = run("db", "prune", f"--older-than={age}")
    assert ran.code == 2
    assert "is not an age: write 90d, 12w, 36h or 30m" in ran.err


def test_a_policy_is_set_shown_and_carried_out(run: Run, held: str) -> None:
    """Ages are words such as `90d`; a dry run counts; `keep` takes an age back."""
    assert "everything is kept for ever" in run("db", "retention").err
    assert "everything is kept for ever" in run("db", "prune").err
    said = run("db", "retention", "--runs", "90d", "--payloads", "30d", "--json").json
    assert (said[0]["runs"], said[0]["payloads"]) == (90 * 86_400, 30 * 86_400)
    assert (said[0]["tenant"], said[0]["channels"]) == ("", None)
    counted = run("db", "prune", "--dry-run", "--json").json
    assert (counted[0]["runs"], counted[0]["deleted"]) == (0, False)
    assert run("db", "retention", "--payloads", "keep", "--json").json[0]["payloads"] is None
    bad = run("db", "retention", "--runs", "a while")
    assert (bad.code, "--runs 'a while' is not an age: write 90d" in bad.err) == (2, True)
    assert run("ledger", "verify").code == 0


def test_a_hold_is_made_listed_and_released(run: Run, held: str) -> None:
    """With who said so, and why."""
    assert run("db", "holds").err == "nothing is held\n"
    made = run("db", "hold", "tenant", "acme", "--reason", "case 17", "--reviewer", "kim")
    assert made.out == "tenant acme is held\n"
    (found,) = run("db", "holds", "--json").json
    assert (found["name"], found["by"], found["reason"]) == ("acme", "cli:kim", "case 17")
    assert run("db", "release", "tenant", "acme").out == "tenant acme is released\n"
    assert run("db", "release", "tenant", "acme").code == 1
    bad = run("db", "hold", "planet", "earth")
    assert (bad.code, "run, conversation or tenant" in bad.err) == (2, True)


def test_import_ag2_needs_a_folder(run: Run, tmp_path: Path) -> None:
    """A folder that is not there is named, and nothing is imported."""
    ran = run("import-ag2", "none")
    assert ran.code != 0 and "none" in ran.err
    assert len(ran.err.splitlines()) == 1
