"""One name for the process that owns a row.

Revision 0004.
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the table of processes, and the column that refers to it."""
    op.rename_table("epochs", "owners")
    for table in ("calls", "reservations", "turns", "leases"):
        # Alembic's own renaming copies a SQLite table row by row.
        op.execute(f"ALTER TABLE {table} RENAME COLUMN epoch TO owner_id")
    op.drop_index("ix_calls_state_epoch", "calls")
    op.create_index("ix_calls_state_owner_id", "calls", ["state", "owner_id"])
