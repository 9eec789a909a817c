"""Run by Alembic; the connection comes from `agent_adapter.store.sql.migrate`."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
