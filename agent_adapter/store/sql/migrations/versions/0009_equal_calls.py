"""Equal calls are found by index, however many of them a run has made.

Revision 0009.
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_DROPPED = (
    ("calls", ["run_id", "call_id"]),
    ("calls", ["once_key"]),
    ("calls", ["place"]),
    ("calls", ["asker", "tool", "digest", "ending"]),
    ("approvals", ["run_id", "tool", "digest"]),
)
_MADE = (
    ("calls", ["run_id", "tool", "digest", "ending"]),
    ("calls", ["run_id", "call_id", "tool", "digest", "last_attempt", "started_at"]),
    ("calls", ["run_id", "last_attempt", "tool", "digest", "started_at"]),
    ("calls", ["place", "tool", "digest", "n"]),
    ("calls", ["asker", "tool", "digest", "ending", "started_at"]),
    ("calls", ["replaces"]),
    ("approvals", ["run_id", "tool", "digest", "state"]),
)


def upgrade() -> None:
    """Replace the indexes that equal rows share by ones that tell them apart."""
    for table, columns in _DROPPED:
        op.drop_index(_name(table, columns), table_name=table)
    for table, columns in _MADE:
        op.create_index(_name(table, columns), table, columns)


def _name(table: str, columns: list[str]) -> str:
    return f"ix_{table}_{'_'.join(columns)}"
