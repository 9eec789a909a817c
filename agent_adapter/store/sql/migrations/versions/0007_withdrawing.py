"""The run that a record's question belongs to, and the questions of a conversation.

Revision 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the indexes; records of before are found by their own run."""
    op.add_column("approvals", sa.Column("root_run_id", sa.Text(), nullable=True))
    for name in ("root_run_id", "conversation"):
        op.create_index(f"ix_approvals_{name}_state", "approvals", [name, "state"])
