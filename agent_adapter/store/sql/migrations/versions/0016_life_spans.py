"""How long a channel lives, and what is left of it while its clocks stand still.

Revision 0016.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; rows of before keep theirs empty, so that no digest changes."""
    op.add_column("channels", sa.Column("ttl", sa.Double(), nullable=True))
    op.add_column("channels", sa.Column("ttl_left", sa.Double(), nullable=True))
