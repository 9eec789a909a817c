"""What is looked at before a database is touched; a refusal leaves it as it was."""

from __future__ import annotations

from dataclasses import dataclass

from agent_adapter.core.errors import StoreError
from agent_adapter.store.postgres.connection import OLDEST, Connection
from agent_adapter.store.sql.revisions import REVISIONS
from agent_adapter.store.tables import TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDatabase:
    """A database: the schema of our tables, their revision, and whether this role may write them.

    `revision` is `None` where there are no tables yet.
    """

    schema: str
    revision: str | None
    writable: bool


def inspect(connection: Connection, name: str) -> FoundDatabase:
    """What is there; `StoreError` with the reason and the fix if no store can be there."""
    version = connection.info.server_version
    if version < OLDEST:
        raise StoreError(
            f"{name} is PostgreSQL {version // 10_000}; this store needs {OLDEST // 10_000} or"
            " newer"
        )
    row = connection.execute(
        "SELECT current_schema(), current_setting('server_encoding'), pg_is_in_recovery(),"
        " current_setting('default_transaction_read_only')"
    ).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    schema, encoding, standby, read_only = row
    if schema is None:
        raise StoreError(
            f"{name}: the role has no schema to keep tables in; create one, or name it in the URL:"
            " ?options=-csearch_path%3Dmy_schema"
        )
    if encoding != "UTF8":
        raise StoreError(
            f"{name} has the encoding {encoding}, which cannot hold every text;"
            " create the database with ENCODING 'UTF8'"
        )
    revision = _revision(connection, name, schema)
    writable = not standby and read_only == "off" and _may_write(connection, revision)
    return FoundDatabase(schema=schema, revision=revision, writable=writable)


def _revision(connection: Connection, name: str, schema: str) -> str | None:
    rows = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]
    ).fetchall()
    there = {row[0] for row in rows}
    ours = there & {table.name for table in TABLES}
    if "alembic_version" not in there and not ours:
        return None
    foreign = StoreError(
        f"{name}: the schema {schema!r} holds tables of another program with names that this store"
        " uses; they are left alone: choose another database or schema"
    )
    if "alembic_version" not in there or "chain_heads" not in there:
        raise foreign
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        raise foreign
    if row[0] not in REVISIONS:
        raise StoreError(
            f"{name} was written by a newer version of this library (its schema is {row[0]}, this"
            f" one knows up to {REVISIONS[-1]}); upgrade agent-adapter, or choose another database"
        )
    return str(row[0])


def _may_write(connection: Connection, revision: str | None) -> bool:
    if revision is None:
        return True  # making the tables says so if it is not
    row = connection.execute("SELECT has_table_privilege('calls', 'INSERT')").fetchone()
    return bool(row and row[0])


def refuse_transaction_pooling(first: Connection, second: Connection, name: str) -> None:
    """Raise `StoreError` if a pooler gives its servers' sessions away between transactions."""

    def backend(connection: Connection) -> int:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        return 0 if row is None else int(row[0])

    before = backend(first)
    second.execute("BEGIN")
    try:
        # Two open connections on one back end, or one that changes it, are not sessions.
        pooled = backend(second) == before or backend(first) != before
    finally:
        second.execute("ROLLBACK")
    if pooled:
        raise StoreError(
            f"{name} is behind a pooler in transaction mode, where a lock that tells a live process"
            " does not last; set pool_mode = session for this database, or connect to the server"
        )
