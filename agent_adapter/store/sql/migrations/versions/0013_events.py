"""Positions of events, checkpoints of tasks, and who was told about a missed deadline.

Revision 0013.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_POSITIONS = (
    ("envelopes", "event"),
    ("audit", "event"),
    ("turns", "due_event"),
    ("turns", "started_event"),
    ("turns", "ended_event"),
    ("tasks", "event"),
)


def upgrade() -> None:
    """Add them; what happened before has no position."""
    for table, column in _POSITIONS:
        op.add_column(table, sa.Column(column, sa.BigInteger(), nullable=True))
        op.create_index(f"ix_{table}_{column}", table, [column])
    op.add_column("turns", sa.Column("stuck_at", sa.Double(), nullable=True))
    op.add_column("tasks", sa.Column("expires_at", sa.Double(), nullable=True))
    op.create_index("ix_tasks_state_expires_at", "tasks", ["state", "expires_at"])
    op.create_index("ix_tasks_channel_id", "tasks", ["channel_id"])
    op.add_column("expectations", sa.Column("told", sa.Text(), nullable=True))
    op.add_column("expectations", sa.Column("handled_at", sa.Double(), nullable=True))
    op.create_table(
        "checkpoints",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("task_id"),
    )
