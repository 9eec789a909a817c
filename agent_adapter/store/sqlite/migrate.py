"""Bringing a SQLite file to the newest schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from agent_adapter.store.sql.migrate import upgrade
from agent_adapter.store.sqlite.inspection import APPLICATION_ID
from agent_adapter.store.sqlite.writer import begin_immediate


def migrate(
    connection: sqlite3.Connection, then: Callable[[sqlite3.Connection], None] | None = None
) -> None:
    """Run the missing migrations, and `then`, and mark the file as ours: all in one transaction."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    begin_immediate(connection)
    try:
        with engine.connect() as borrowed:
            upgrade(borrowed)
            borrowed.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            if then is not None:
                then(connection)
            borrowed.commit()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
