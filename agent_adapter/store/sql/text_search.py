"""The condition `has` in SQL: a text contains another, whatever the case of either."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sql.schema import core_table
from agent_adapter.store.tables import Table

HAS_TEXT = "agent_adapter_has_text"
"""The function `(value, wanted)` to 0 or 1 that an SQLite connection must have."""


def has_text_in(declared: Table, name: str, wanted: Any) -> ColumnElement[bool]:
    """Whether the column contains `wanted`; `StoreError` for a column that is no text."""
    kinds = {column.name: column.kind for column in declared.columns}
    if kinds[name] != "text":
        raise StoreError(f"condition '{name} has' needs a column of text, not of {kinds[name]}")
    return HasText(core_table(declared).c[name], sa.cast(wanted, sa.Text()))


class HasText(FunctionElement[bool]):
    """Compiles to the dialect's comparison of a column with a text."""

    name = HAS_TEXT
    type = sa.Boolean()
    inherit_cache = True


@compiles(HasText)
def _by_function(element: HasText, compiler: SQLCompiler, **more: Any) -> str:
    return f"{HAS_TEXT}({compiler.process(element.clauses, **more)})"


@compiles(HasText, "postgresql")
def _by_position(element: HasText, compiler: SQLCompiler, **more: Any) -> str:
    column, wanted = (compiler.process(each, **more) for each in element.clauses)
    return f"strpos({_folded(column)}, {_folded(wanted)}) > 0"


def _folded(sql: str) -> str:
    # The columns' own collation, C, knows the case of ASCII alone.
    return f"replace(lower(normalize({sql}, NFKC) COLLATE \"und-x-icu\"), 'ß', 'ss')"
