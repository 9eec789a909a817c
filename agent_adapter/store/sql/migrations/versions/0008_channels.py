"""Channels are in the chains; what is left of one whose transcript was removed.

Revision 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the baselines are written when this is done."""
    op.add_column("channels", sa.Column("summary", sa.Text(), nullable=True))
