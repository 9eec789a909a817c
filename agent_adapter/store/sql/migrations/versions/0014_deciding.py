"""When a decision takes effect, and a person's answer in place of a call.

Revision 0014.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, the index for what expires first, and the table of saved views."""
    op.add_column("approvals", sa.Column("released_at", sa.Double(), nullable=True))
    op.add_column("approvals", sa.Column("answer", sa.Text(), nullable=True))
    op.create_index("ix_approvals_state_decide_by", "approvals", ["state", "decide_by"])
    op.create_table(
        "saved_views",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("person", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_saved_views_person_tenant", "saved_views", ["person", "tenant"])
