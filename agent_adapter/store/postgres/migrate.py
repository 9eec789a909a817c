"""Making the tables, or bringing them to the newest schema."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateTable

from agent_adapter.store.postgres.connection import Connection
from agent_adapter.store.postgres.inspection import inspect
from agent_adapter.store.postgres.locks import SCHEMA, lock_id
from agent_adapter.store.sql.migrate import upgrade
from agent_adapter.store.sql.revisions import HEAD
from agent_adapter.store.sql.schema import METADATA
from agent_adapter.store.tables import TABLES


def migrate(connection: Connection, name: str) -> None:
    """Make or upgrade the tables in one transaction; the others that open the store wait."""
    connection.execute("BEGIN")
    try:
        connection.execute(f"SELECT pg_advisory_xact_lock({lock_id(SCHEMA, '')})".encode())
        found = inspect(connection, name)
        if found.revision is None:
            _create(connection)
        elif found.revision != HEAD:
            _upgrade(connection)
        connection.execute("COMMIT")
    except BaseException:
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise


def _create(connection: Connection) -> None:
    """The newest schema at once: no database was made by an older version of this store."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's
    for table in METADATA.sorted_tables:
        connection.execute(str(CreateTable(table).compile(dialect=dialect)).encode())
    quote = dialect.identifier_preparer.quote
    for declared in TABLES:
        for columns in declared.indexes:
            # None comes first in this library's orders; an index in that order spares a sort.
            listed = ", ".join(
                quote(name) if name in declared.key else f"{quote(name)} NULLS FIRST"
                for name in columns
            )
            index = quote(f"ix_{declared.name}_{'_'.join(columns)}")
            made = f"CREATE INDEX {index} ON {quote(declared.name)} ({listed})"
            connection.execute(made.encode())
    connection.execute(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    )
    connection.execute("INSERT INTO alembic_version VALUES ($1)", [HEAD])


def _upgrade(connection: Connection) -> None:
    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: connection,
        poolclass=StaticPool,
        isolation_level="AUTOCOMMIT",  # the transaction is ours
    )
    with engine.connect() as borrowed:
        upgrade(borrowed)
