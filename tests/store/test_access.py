"""Tokens and sessions as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_adapter.store import access, queries
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Transaction
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("name", "role"), [("", "viewer"), ("a b", "viewer"), ("kim", "boss")])
async def test_a_token_needs_a_name_and_a_known_role(name: str, role: str) -> None:
    """Each refusal says what would do."""
    made = await MemoryStore().write(lambda tx: access.create_token(tx, name, role, "s"))
    assert isinstance(made, Refusal) and ("no name" in made.reason or "viewer" in made.reason)


async def test_a_revoked_name_is_free_again() -> None:
    """And the old secret stays worthless."""
    store = MemoryStore()

    def op(tx: Transaction) -> Any:
        access.create_token(tx, "kim", "viewer", "old")
        access.revoke_token(tx, "kim")
        access.create_token(tx, "kim", "admin", "new")
        return access.token_of(tx, "old"), access.token_of(tx, "new")

    old, new = await store.write(op)
    assert old is None and new["role"] == "admin"


async def test_revoking_twice_is_refused() -> None:
    """As is revoking what was never made."""
    store = MemoryStore()
    await store.write(lambda tx: access.create_token(tx, "kim", "viewer", "s"))
    await store.write(lambda tx: access.revoke_token(tx, "kim"))
    for name, reason in (("kim", "revoked already"), ("lee", "no token lee")):
        again = await store.write(lambda tx, name=name: access.revoke_token(tx, name))
        assert isinstance(again, Refusal) and reason in again.reason


async def test_rows_of_one_time_stay_on_one_page() -> None:
    """A page may be longer than asked for; it never loses a row."""
    store = MemoryStore()

    def op(tx: Transaction) -> Any:
        for n, at in enumerate([1.0, 2.0, 2.0, 2.0, 3.0]):
            row = {"run_id": f"r{n}", "tenant": "", "started_at": at}
            tx.insert("runs", row)
        pages, start = [], None
        while True:
            page = queries.paged(tx, "runs", {"tenant": ""}, by="started_at", limit=2, start=start)
            pages.append([row["run_id"] for row in page.rows])
            if page.next is None:
                return pages
            start = page.next

    pages = await store.write(op)
    assert sorted(id for page in pages for id in page) == [f"r{n}" for n in range(5)]
    assert len(pages) == 2


async def test_runs_of_an_older_store_are_noted_when_it_is_opened(tmp_path: Path) -> None:
    """The migration adds what later versions write with the first entry."""
    import sqlalchemy as sa

    from agent_adapter.store.sql.migrate import upgrade
    from agent_adapter.store.sqlite.inspection import APPLICATION_ID

    path = tmp_path / "old.db"
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
    with engine.connect() as connection:
        upgrade(connection, "0002")
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql("INSERT INTO ledger (run_id, seq, at) VALUES ('run_o', 1, 7.0)")
        connection.exec_driver_sql(
            "INSERT INTO calls (call_key, run_id, tenant, principal)"
            " VALUES ('call_1', 'run_o', 'acme', 'ann')"
        )
        connection.commit()
    store = SqliteStore(path, key=bytes(32))
    line = await store.read(lambda tx: queries.run_line(tx, "run_o", "acme"))
    assert line is not None and (line.principal, line.started_at, line.calls) == ("ann", 7.0, 1)
    await store.aclose()
