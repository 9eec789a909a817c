"""People, their log-ins, and their roles in tenants.

Revision 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "people",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("folded", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "logins",
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("public_key", sa.Text(), nullable=True),
        sa.Column("valid_until", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("login"),
    )
    op.create_index("ix_logins_name", "logins", ["name"])
    op.create_index("ix_logins_person_id", "logins", ["person_id"])
    op.create_table(
        "memberships",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("person_id", "tenant"),
    )
