"""Bringing a SQLite file to the newest schema."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from agent_adapter.store.sql.migrate import upgrade
from agent_adapter.store.sqlite.inspection import APPLICATION_ID


def migrate(connection: sqlite3.Connection) -> None:
    """Run the missing migrations and mark the file as ours, all in one transaction."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    connection.execute("BEGIN IMMEDIATE")
    try:
        with engine.connect() as borrowed:
            upgrade(borrowed)
            borrowed.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            borrowed.commit()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
