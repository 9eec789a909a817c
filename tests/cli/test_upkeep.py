"""`agent-adapter writes` and `agent-adapter db`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

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
    assert run("writes", "allow").out == "writes may run\n"
    assert "nothing was done" in run(*PAY).err
    assert run("ledger", "verify").code == 0


def test_backup_can_be_used_as_a_store(run: Run, held: str, tmp_path: Path) -> None:
    """The copy has what waited in the original."""
    written = run("db", "backup", "copy.db", "--json")
    assert written.json["backup"] == str(tmp_path / "copy.db")
    assert held in run("approvals", "list", "--store", "copy.db").out
    again = run("db", "backup", "copy.db")
    assert (again.code, "exists already" in again.err) == (1, True)


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
    assert "is no age: write 90d, 12w, 36h or 30m" in ran.err
