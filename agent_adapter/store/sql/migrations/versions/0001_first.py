"""The first schema.

Revision 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table and index."""
    _calls()
    _approvals()
    _votes()
    _ledger()
    _chain_heads()
    _payloads()
    _runs()
    _usage()
    _reservations()
    _taints()
    _cache()
    _epochs()
    _meta()


def _calls() -> None:
    op.create_table(
        "calls",
        sa.Column("call_key", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("last_attempt", sa.BigInteger(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("parent_call_key", sa.Text(), nullable=True),
        sa.Column("effects", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("ending", sa.Text(), nullable=True),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_text", sa.Text(), nullable=True),
        sa.Column("epoch", sa.Text(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("arguments", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("once_key", sa.Text(), nullable=True),
        sa.Column("record_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("call_key"),
    )
    op.create_index("ix_calls_run_id_tool_digest_n", "calls", ["run_id", "tool", "digest", "n"])
    op.create_index("ix_calls_run_id_call_id", "calls", ["run_id", "call_id"])
    op.create_index("ix_calls_run_id_started_at", "calls", ["run_id", "started_at"])
    op.create_index("ix_calls_state_epoch", "calls", ["state", "epoch"])
    op.create_index("ix_calls_ending_finished_at", "calls", ["ending", "finished_at"])
    op.create_index("ix_calls_once_key", "calls", ["once_key"])


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=True),
        sa.Column("requester", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("binding", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("request", sa.Text(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("edited", sa.Text(), nullable=True),
        sa.Column("reviewer", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("decide_by", sa.Double(), nullable=True),
        sa.Column("decided_at", sa.Double(), nullable=True),
        sa.Column("use_by", sa.Double(), nullable=True),
        sa.Column("taken_at", sa.Double(), nullable=True),
        sa.Column("votes_needed", sa.BigInteger(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_approvals_state_created_at", "approvals", ["state", "created_at"])
    op.create_index("ix_approvals_call_key", "approvals", ["call_key"])
    op.create_index("ix_approvals_run_id_tool_digest", "approvals", ["run_id", "tool", "digest"])
    op.create_index("ix_approvals_run_id_state", "approvals", ["run_id", "state"])
    op.create_index("ix_approvals_principal_state", "approvals", ["principal", "state"])
    op.create_index("ix_approvals_created_at", "approvals", ["created_at"])


def _votes() -> None:
    op.create_table(
        "votes",
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("approval_id", "reviewer"),
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("hash", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "seq"),
    )
    op.create_index("ix_ledger_call_key", "ledger", ["call_key"])
    op.create_index("ix_ledger_at", "ledger", ["at"])


def _chain_heads() -> None:
    op.create_table(
        "chain_heads",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("hash", sa.LargeBinary(), nullable=True),
        sa.Column("mac", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("run_id"),
    )


def _payloads() -> None:
    op.create_table(
        "payloads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_payloads_run_id", "payloads", ["run_id"])


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=True),
        sa.Column("root_run_id", sa.Text(), nullable=True),
        sa.Column("parent_call_key", sa.Text(), nullable=True),
        sa.Column("depth", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("cancelled", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("ix_runs_started_at", "runs", ["started_at"])


def _usage() -> None:
    op.create_table(
        "usage",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=True),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "tool"),
    )


def _reservations() -> None:
    op.create_table(
        "reservations",
        sa.Column("call_key", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("epoch", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("call_key"),
    )
    op.create_index("ix_reservations_run_id", "reservations", ["run_id"])


def _taints() -> None:
    op.create_table(
        "taints",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("scope", "label"),
    )


def _cache() -> None:
    op.create_table(
        "cache",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_cache_expires_at", "cache", ["expires_at"])


def _epochs() -> None:
    op.create_table(
        "epochs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("heartbeat_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )


def _meta() -> None:
    op.create_table(
        "meta",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
