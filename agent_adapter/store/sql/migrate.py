"""Bringing a database to the newest schema."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

SCRIPTS = Path(__file__).parent / "migrations"
"""The folder of Alembic's scripts."""


def upgrade(connection: sa.Connection, to: str = "head") -> None:
    """Run the migrations that the database lacks, in the transaction that `connection` is in.

    Alembic is slow to import, so call this only where the schema is not the newest.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    # `%` would be read as interpolation.
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
