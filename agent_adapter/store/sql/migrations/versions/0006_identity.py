"""Where in its run a call was made, whose it is, and what a record may be used for.

Revision 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agent_adapter.store.keys import asker_of, conversation_key, run_scope_of

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and fill them in for the calls, records, runs and labels that are there."""
    for name in ("place", "conversation", "asker", "replaces"):
        op.add_column("calls", sa.Column(name, sa.Text(), nullable=True))
    for name in ("conversation", "asker", "asked_key"):
        op.add_column("approvals", sa.Column(name, sa.Text(), nullable=True))
    op.add_column("approvals", sa.Column("run_known", sa.BigInteger(), nullable=True))
    for name in ("name", "conversation"):
        op.add_column("runs", sa.Column(name, sa.Text(), nullable=True))
    op.create_index("ix_calls_place", "calls", ["place"])
    op.create_index(
        "ix_calls_asker_tool_digest_ending", "calls", ["asker", "tool", "digest", "ending"]
    )
    op.create_index("ix_approvals_asker_state", "approvals", ["asker", "state"])
    op.execute("UPDATE approvals SET asked_key = call_key, run_known = 1")
    op.execute("UPDATE runs SET name = run_id")
    _name_askers("calls", "call_key", {"state": ["open"], "ending": ["unknown"]})
    _name_askers("approvals", "id", {"state": ["pending", "approved"]})
    _key_labels()


def _name_askers(table: str, key: str, states: dict[str, list[str]]) -> None:
    """Give rows that may still matter the asker and conversation of a new call of theirs."""
    connection = op.get_bind()
    rows = sa.table(
        table,
        *(sa.column(name) for name in (key, "tenant", "principal", "thread_id", "run_id")),
        *(sa.column(name) for name in ("state", "ending", "conversation", "asker")),
    )
    matters = sa.or_(*(rows.c[name].in_(values) for name, values in states.items()))
    wanted = (rows.c[key], rows.c.tenant, rows.c.principal, rows.c.thread_id, rows.c.run_id)
    for id, tenant, principal, thread, run in connection.execute(
        sa.select(*wanted).where(matters)
    ).fetchall():
        conversation = (
            run_scope_of(run) if thread is None else conversation_key(tenant or "", thread)
        )
        asker = conversation if principal is None else asker_of(tenant or "", principal)
        connection.execute(
            sa.update(rows).where(rows.c[key] == id).values(conversation=conversation, asker=asker)
        )


def _key_labels() -> None:
    """Labels of threads were kept under `thread:TENANT:THREAD`, which two threads could share.

    Where more than one reading is possible each of them keeps the label.
    """
    connection = op.get_bind()
    found = connection.execute(sa.text("SELECT scope, label, at FROM taints"))
    for scope, label, at in found.fetchall():
        kind, _, rest = scope.partition(":")
        if kind != "thread":
            continue
        parts = rest.split(":")
        for cut in range(1, len(parts)):
            key = conversation_key(":".join(parts[:cut]), ":".join(parts[cut:]))
            connection.execute(
                sa.text("INSERT OR IGNORE INTO taints (scope, label, at) VALUES (:s, :l, :a)"),
                {"s": key, "l": label, "a": at},
            )
