"""Channels, their participants, turns and log.

Revision 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table and index."""
    _identities()
    _channels()
    _channel_members()
    _graphs()
    _envelopes()
    _turns()
    _turn_waits()
    _staged()
    _expectations()
    _audit()
    _commands()
    _leases()
    _tasks()


def _identities() -> None:
    op.create_table(
        "identities",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("passport", sa.Text(), nullable=True),
        sa.Column("resume", sa.Text(), nullable=True),
        sa.Column("rule", sa.Text(), nullable=True),
        sa.Column("skill", sa.Text(), nullable=True),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("registered_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("ix_identities_agent_id", "identities", ["agent_id"])


def _channels() -> None:
    op.create_table(
        "channels",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("creator_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("closed_at", sa.Double(), nullable=True),
        sa.Column("close_reason", sa.Text(), nullable=True),
        sa.Column("parent_channel_id", sa.Text(), nullable=True),
        sa.Column("graph_hash", sa.Text(), nullable=True),
        sa.Column("knobs", sa.Text(), nullable=True),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=True),
        sa.Column("folded", sa.Text(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("spoken", sa.BigInteger(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("turn_n", sa.BigInteger(), nullable=True),
        sa.Column("expected", sa.Text(), nullable=True),
        sa.Column("paused", sa.BigInteger(), nullable=True),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("channel_id"),
    )
    op.create_index("ix_channels_state_created_at", "channels", ["state", "created_at"])
    op.create_index("ix_channels_state_expires_at", "channels", ["state", "expires_at"])
    op.create_index("ix_channels_creator_id", "channels", ["creator_id"])


def _channel_members() -> None:
    op.create_table(
        "channel_members",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("ack", sa.Text(), nullable=True),
        sa.Column("joined_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("channel_id", "agent_id"),
    )
    op.create_index(
        "ix_channel_members_agent_id_channel_id", "channel_members", ["agent_id", "channel_id"]
    )


def _graphs() -> None:
    op.create_table(
        "graphs",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("hash"),
    )


def _envelopes() -> None:
    op.create_table(
        "envelopes",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("envelope_id", sa.Text(), nullable=True),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("event_type", sa.Text(), nullable=True),
        sa.Column("causation_id", sa.Text(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("audience", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("channel_id", "seq"),
    )
    op.create_index("ix_envelopes_envelope_id", "envelopes", ["envelope_id"])
    op.create_index(
        "ix_envelopes_channel_id_idempotency_key", "envelopes", ["channel_id", "idempotency_key"]
    )
    op.create_index(
        "ix_envelopes_channel_id_event_type_seq", "envelopes", ["channel_id", "event_type", "seq"]
    )


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("fails", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("epoch", sa.Text(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("trigger", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("turn_id"),
    )
    op.create_index("ix_turns_state_due_at", "turns", ["state", "due_at"])
    op.create_index("ix_turns_channel_id_n", "turns", ["channel_id", "n"])
    op.create_index("ix_turns_channel_id_state", "turns", ["channel_id", "state"])
    op.create_index("ix_turns_agent_id_state", "turns", ["agent_id", "state"])


def _turn_waits() -> None:
    op.create_table(
        "turn_waits",
        sa.Column("waits_for", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("waits_for", "turn_id"),
    )
    op.create_index("ix_turn_waits_turn_id", "turn_waits", ["turn_id"])
    op.create_index("ix_turn_waits_until", "turn_waits", ["until"])


def _staged() -> None:
    op.create_table(
        "staged",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("turn_id", "attempt", "position"),
    )


def _expectations() -> None:
    op.create_table(
        "expectations",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("handler", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("params", sa.Text(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("left", sa.Double(), nullable=True),
        sa.Column("fired_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("channel_id", "turn", "position"),
    )
    op.create_index("ix_expectations_fired_at_due_at", "expectations", ["fired_at", "due_at"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("channel_id", sa.Text(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_channel_id_at", "audit", ["channel_id", "at"])


def _commands() -> None:
    op.create_table(
        "commands",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_commands_state_created_at", "commands", ["state", "created_at"])


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Text(), nullable=True),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=True),
        sa.Column("channel_id", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("task_id"),
    )
    op.create_index("ix_tasks_owner_id_state", "tasks", ["owner_id", "state"])
