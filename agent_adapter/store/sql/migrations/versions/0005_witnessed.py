"""Chains name the rows that they vouch for, and cached results bear a seal.

Revision 0005.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop cached results, which have no seal; the baselines are written when this is done."""
    op.execute("DELETE FROM cache")
