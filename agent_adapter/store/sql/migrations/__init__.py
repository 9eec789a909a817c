"""Alembic's scripts: how a database comes from each revision to the next."""
