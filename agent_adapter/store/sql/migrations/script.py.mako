"""${message}.

Revision ${up_revision}, after ${down_revision}.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the revision."""
    ${upgrades if upgrades else "raise NotImplementedError"}
