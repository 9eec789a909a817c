"""People who sign in, and what lists of runs and tools are read by.

Revision 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and the index, and note the runs that are there already."""
    _tokens()
    _sessions()
    op.create_index("ix_calls_tool_started_at", "calls", ["tool", "started_at"])
    _note_runs()


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("hash", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_tokens_hash", "tokens", ["hash"])
    op.create_index("ix_tokens_name", "tokens", ["name"])


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("via", sa.Text(), nullable=True),
        sa.Column("csrf", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_sessions_token_id", "sessions", ["token_id"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])


def _note_runs() -> None:
    """One row per chain that began before such rows were written."""
    op.execute(
        "INSERT INTO runs (run_id, tenant, principal, started_at)"
        " SELECT l.run_id,"
        " COALESCE((SELECT c.tenant FROM calls c WHERE c.run_id = l.run_id LIMIT 1),"
        " (SELECT a.tenant FROM approvals a WHERE a.run_id = l.run_id LIMIT 1), ''),"
        " (SELECT c.principal FROM calls c WHERE c.run_id = l.run_id LIMIT 1), l.at"
        " FROM ledger l WHERE l.seq = 1"
        " AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = l.run_id)"
    )
