"""Bringing a database to the newest schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from agent_adapter.store.sql.inspection import APPLICATION_ID

__all__ = ["migrate"]

_SCRIPTS = Path(__file__).parent / "migrations"


def migrate(connection: sqlite3.Connection) -> None:
    """Run the migrations that are missing, all in one transaction with the file's mark.

    Alembic is slow to import, so call this only where the schema is not the newest.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    # `%` would be read as interpolation.
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    connection.execute("BEGIN IMMEDIATE")
    try:
        with engine.connect() as borrowed:
            config.attributes["connection"] = borrowed
            command.upgrade(config, "head")
            borrowed.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            borrowed.commit()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
