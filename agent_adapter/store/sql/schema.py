"""The declared tables as SQLAlchemy Core tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from agent_adapter.store.tables import TABLES, Kind, Table

METADATA = sa.MetaData()
"""Every table with its indexes; the migrations build the same."""

# By code point, as texts are ordered everywhere else, whatever the database's language.
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_TYPES: dict[Kind, TypeEngine[Any] | type[TypeEngine[Any]]] = {
    "text": _TEXT,
    "int": sa.BigInteger,
    "real": sa.Double,
    "blob": sa.LargeBinary,
}


def core_table(declared: Table) -> sa.Table:
    """The Core table of that name, built from its declaration."""
    existing = METADATA.tables.get(declared.name)
    if existing is not None:
        return existing
    columns = [
        sa.Column(c.name, _TYPES[c.kind], primary_key=c.name in declared.key, nullable=False)
        if c.name in declared.key
        else sa.Column(c.name, _TYPES[c.kind], nullable=True)
        for c in declared.columns
    ]
    table = sa.Table(declared.name, METADATA, *columns)
    for names in declared.indexes:
        sa.Index(f"ix_{declared.name}_{'_'.join(names)}", *(table.c[name] for name in names))
    return table


for _declared in TABLES:
    core_table(_declared)
