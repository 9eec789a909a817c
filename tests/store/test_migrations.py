"""The migrations build the declared tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from agent_adapter.store.sql import migrate, revisions
from agent_adapter.store.sql.migrate import upgrade
from agent_adapter.store.sql.schema import METADATA
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.sqlite.inspection import APPLICATION_ID

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(tmp_path: Path) -> sa.Engine:
    """The database that a new store makes."""
    store = SqliteStore(tmp_path / "state.db")
    await store.aclose()
    return sa.create_engine(f"sqlite:///{tmp_path / 'state.db'}", poolclass=sa.NullPool)


async def test_the_migrated_schema_is_the_declared_one(engine: sa.Engine) -> None:
    """No table, column, type, key or index differs."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        inspector = sa.inspect(connection)
        for name, table in METADATA.tables.items():
            key = inspector.get_pk_constraint(name)["constrained_columns"]
            assert key == [column.name for column in table.primary_key]


async def test_the_file_bears_our_mark(engine: sa.Engine) -> None:
    """SQLite's application id says whose file it is."""
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION_ID


def test_the_list_of_revisions_is_that_of_the_scripts() -> None:
    """Known revisions are exactly those that have a script, oldest first."""
    config = Config()
    config.set_main_option("script_location", str(migrate.SCRIPTS))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(script.revision for script in scripts)[::-1] == revisions.REVISIONS


async def test_a_file_that_was_only_begun_is_made_a_store(tmp_path: Path) -> None:
    """An empty file, or a database without tables, is taken for a new store."""
    for name in ("empty.db", "begun.db"):
        path = tmp_path / name
        path.touch()
        if name == "begun.db":
            with sa.create_engine(f"sqlite:///{path}").connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        store = SqliteStore(path)
        assert await store.write(lambda tx: tx.insert("runs", {"run_id": "r"})) is True
        await store.aclose()


async def test_a_file_of_version_0_1_opens_with_its_rows(tmp_path: Path) -> None:
    """What its processes left open, and the processes themselves, are found under owner ids."""
    path = tmp_path / "old.db"
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
    with engine.connect() as connection:
        upgrade(connection, "0003")
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        keys = {"calls": "call_key", "reservations": "call_key", "turns": "turn_id"}
        for table, key in keys.items():
            connection.exec_driver_sql(f"INSERT INTO {table} ({key}, epoch) VALUES ('k', 'epo_a')")
        connection.exec_driver_sql("INSERT INTO leases (name, epoch) VALUES ('hub', 'epo_a')")
        connection.exec_driver_sql("INSERT INTO epochs (id, pid) VALUES ('epo_a', 7)")
        connection.commit()
    store = SqliteStore(path, key=bytes(32))
    for table in ("calls", "reservations", "turns", "leases"):
        assert await store.read(lambda tx, t=table: tx.count(t, {"owner_id": "epo_a"})) == 1
    owner = await store.read(lambda tx: tx.get("owners", "epo_a"))
    assert owner is not None and owner["pid"] == 7
    assert await store.read(lambda tx: tx.is_live("epo_a")) is False
    await store.aclose()
