"""Every single change of a cell and deletion of a row is found, but for those listed."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.exec import ledger
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.timekeeping import MARK
from tests.exec.sample_store import Change, changes, fill
from tests.exec.shop import FakeClock
from tests.sampling import sample

pytestmark = pytest.mark.anyio

ALL = 2_400
TAKEN = sample("changes of a store", quick=300, full=ALL)

UNSEEN = {
    ("cache", None): "a cached result that is gone is read anew",
    ("meta", None): "the mark of the key, and that of the time",
    ("owners", None): "who runs: locks of the system tell",
    ("leases", None): "who serves channels: locks of the system tell",
    ("payloads", "salt"): "of an erased payload nothing is left to compare",
    ("tokens", "last_used_at"): "noted once a minute",
}
"""What `verify` does not see, with the reason; all of `owners` and `leases` is among them."""

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store with some of everything."""
    made = SqliteStore(tmp_path / "state.db", clock=FakeClock())
    await fill(made)
    yield made
    await made.aclose()


def _is_unseen(change: Change) -> bool:
    if change.table == "meta":
        return change.row["name"] in ("key-check", MARK)
    return (change.table, change.column) in UNSEEN or change.table in ("owners", "leases")


async def test_r16_every_change_of_one_cell_or_row_is_found(store: SqliteStore) -> None:
    """Over all tables that have rows, the unseen ones left out; no change leaves no problem."""
    connection = sqlite3.connect(store.path, isolation_level=None)
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = [name for (name,) in named if name != "alembic_version"]
    every = [each for each in changes(connection, tables) if not _is_unseen(each)]
    missed = []
    tried = 0
    for change in every[:: max(1, len(every) // TAKEN)]:
        try:
            change.apply(connection)
        except sqlite3.IntegrityError:
            continue
        tried += 1
        if (await ledger.verify(store)).ok:
            missed.append((change.table, change.column, change.values))
        change.undo(connection)
    connection.close()
    assert missed == [] and tried > min(TAKEN, 250)
    assert (await ledger.verify(store)).problems == ()


MADE_UP: dict[str, dict[str, Any]] = {
    "calls": {"call_key": "call_x", "run_id": "run_1", "state": "done", "ending": "ok"},
    "approvals": {"id": "apr_x", "run_id": "run_3", "state": "approved"},
    "votes": {"reviewer": "eve", "verdict": "approved"},
    "runs": {"run_id": "run_x"},
    "usage": {"run_id": "run_1", "tool": "", "calls": -5},
    "reservations": {"call_key": "call_x", "run_id": "run_9"},
    "taints": {"scope": "thread:x:y", "label": "z"},
    "meta": {"name": "cancelled:run_2", "value": "no"},
    "tokens": {"id": "tok_x", "name": "eve", "role": "admin"},
    "cache": {"key": "k", "result": "json\n1", "labels": "[]", "expires_at": 9e9},
    "ledger": {"run_id": "run_1", "seq": 99, "body": b"{}", "hash": b"h"},
    "channels": {"channel_id": "chn_x", "state": "active"},
    "channel_members": {"agent_id": "agt_x", "name": "eve", "role": "participant"},
    "envelopes": {"seq": 99, "envelope_id": "env_x", "body": "{}"},
    "turns": {"turn_id": "trn_x", "agent_id": "agt_x", "state": "due", "due_at": 1.0},
    "expectations": {"turn": 0, "position": 9, "handler": "auto_close", "due_at": 1.0},
    "audit": {"id": "aud_x", "at": 1.0, "kind": "note", "payload": "{}"},
    "identities": {"name": "eve", "agent_id": "agt_x"},
    "graphs": {"hash": "h", "data": "{}"},
    "tasks": {"task_id": "task_x", "owner_id": "agt_x"},
    "commands": {"id": "cmd_x", "kind": "close", "payload": "{}", "state": "queued"},
}


@pytest.mark.parametrize("table", MADE_UP)
async def test_r16_a_row_that_was_made_up_is_found(store: SqliteStore, table: str) -> None:
    """In every table that an answer of the product comes from."""
    connection = sqlite3.connect(store.path)
    row = dict(MADE_UP[table])
    if table == "votes":
        (row["approval_id"],) = connection.execute("SELECT approval_id FROM votes").fetchone()
    if table in ("channel_members", "envelopes", "turns", "expectations"):
        (row["channel_id"],) = connection.execute("SELECT channel_id FROM channels").fetchone()
    names, marks = ", ".join(row), ", ".join("?" for _ in row)
    with connection:
        connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",
            tuple(row.values()),
        )
    connection.close()
    assert not (await ledger.verify(store)).ok


async def test_r16_a_call_put_back_into_its_old_run_is_found(tmp_path: Path) -> None:
    """A row that goes back to an earlier state, which an older chain vouches for, is no good."""
    from agent_adapter.core.errors import ToolBusy
    from agent_adapter.exec.executor import Executor
    from tests.exec.shop import ARGS, Till, in_run

    clock = FakeClock()
    store = SqliteStore(tmp_path / "state.db", clock=clock)
    executor = Executor(store=store)
    till = Till(ToolBusy("busy"), once_key=lambda args: "once")
    connection = sqlite3.connect(store.path)
    with pytest.raises(ToolBusy):
        await executor.run_spec(till.spec, ARGS, in_run("first"))
    connection.row_factory = sqlite3.Row
    old = dict(connection.execute("SELECT * FROM calls").fetchone())
    await ledger.resolve(store, old["call_key"], reviewer="ann", happened=False)
    aborted = dict(connection.execute("SELECT * FROM calls").fetchone())
    clock.pass_(5)
    till.then = "charged"
    await executor.run_spec(till.spec, ARGS, in_run("second"))
    assert (await ledger.verify(store)).ok
    sets = ", ".join(f"{name} = ?" for name in aborted)
    with connection:
        connection.execute(f"UPDATE calls SET {sets}", tuple(aborted.values()))
    connection.close()
    assert not (await ledger.verify(store)).ok
    await store.aclose()


def test_what_verify_cannot_see_is_on_the_page() -> None:
    """The threat model names each table, with the reason."""
    text = PAGE.read_text(encoding="utf-8")
    for table, _ in UNSEEN:
        assert f"`{table}`" in text
