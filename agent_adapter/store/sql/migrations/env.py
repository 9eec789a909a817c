"""Run by Alembic; the connection comes from `agent_adapter.store.sql.migrate`."""

from __future__ import annotations

from alembic import context

# Only while Alembic runs this script is there a configuration; importing it does nothing.
if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
    context.run_migrations()
