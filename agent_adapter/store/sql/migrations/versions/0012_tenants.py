"""The tenants of a token, and the one that a session looks at.

Revision 0012.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; sessions end, because nobody said which tenant they are for."""
    op.add_column("tokens", sa.Column("tenants", sa.Text(), nullable=True))
    op.add_column("sessions", sa.Column("tenant", sa.Text(), nullable=True))
    op.execute("DELETE FROM sessions")
