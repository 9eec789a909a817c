"""The tables inside one operation, over a cursor of a database driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Condition, Row
from agent_adapter.store.conditions import check_columns
from agent_adapter.store.sql.statements import Statements, shape_of

__all__ = ["Cursor", "IsLive", "SqlTransaction"]


class Cursor(Protocol):
    """What is used of a DB-API cursor."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        ...

    def execute(self, sql: str, parameters: Any = ..., /) -> Any:
        """Run one statement."""
        ...

    def fetchone(self) -> Any:
        """The next row or `None`."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...


IsLive = Callable[["SqlTransaction", str], bool]
"""Whether the process behind an epoch still runs; may look into the tables."""


class SqlTransaction:
    """One per connection, used again for every operation; `wrote` counts the rows changed."""

    __slots__ = ("_cursor", "_is_live", "_statements", "epoch", "key", "memo", "now", "wrote")

    def __init__(
        self, cursor: Cursor, statements: Statements, *, key: bytes, epoch: str, is_live: IsLive
    ) -> None:
        self._cursor = cursor
        self._statements = statements
        self._is_live = is_live
        self.key = key
        self.epoch = epoch
        self.memo: dict[str, Row] = {}
        self.now = 0.0
        self.wrote = 0

    def get(self, table: str, *key: Any) -> Row | None:
        """The row with that primary key."""
        statement = self._statements.get(table)
        declared = self._statements.declared(table)
        if len(key) != len(declared.key):
            raise StoreError(f"the key of {table!r} is ({', '.join(declared.key)})")
        self._cursor.execute(statement.sql, key)
        row = self._cursor.fetchone()
        return None if row is None else dict(zip(statement.columns, row, strict=True))

    def insert(self, table: str, row: Row) -> bool:
        """Add the row unless its key exists."""
        statement = self._statements.insert(table)
        blank = self._statements.blanks[table]
        full = {**blank, **row}
        declared = self._statements.declared(table)
        if len(full) != len(blank):
            check_columns(declared, row)
        for name in declared.key:
            if full[name] is None:
                raise StoreError(f"a row of {table!r} needs all of ({', '.join(declared.key)})")
        self._cursor.execute(statement.sql, statement.bound(list(full.values())))
        added = self._cursor.rowcount
        self.wrote += added
        return added == 1

    def update(self, table: str, where: Condition, values: Row) -> int:
        """Set `values` in every matching row."""
        shape, wanted = shape_of(where)
        statement = self._statements.update(table, tuple(values), shape)
        self._cursor.execute(statement.sql, statement.bound([*values.values(), *wanted]))
        changed = self._cursor.rowcount
        self.wrote += changed
        return changed

    def delete(self, table: str, where: Condition) -> int:
        """Remove every matching row."""
        shape, wanted = shape_of(where)
        statement = self._statements.delete(table, shape)
        self._cursor.execute(statement.sql, statement.bound(wanted))
        removed = self._cursor.rowcount
        self.wrote += removed
        return removed

    def select(
        self,
        table: str,
        where: Condition | None = None,
        *,
        order_by: str | Sequence[str] = (),
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Row]:
        """Matching rows, in order."""
        shape, wanted = shape_of(where)
        order = (order_by,) if isinstance(order_by, str) else tuple(order_by)
        statement = self._statements.select(
            table, shape, order, descending=descending, limited=limit is not None
        )
        if limit is not None:
            wanted.append(limit)
        self._cursor.execute(statement.sql, statement.bound(wanted))
        columns = statement.columns
        return [dict(zip(columns, row, strict=True)) for row in self._cursor.fetchall()]

    def count(self, table: str, where: Condition | None = None) -> int:
        """How many rows match."""
        shape, wanted = shape_of(where)
        statement = self._statements.count(table, shape)
        self._cursor.execute(statement.sql, statement.bound(wanted))
        number: int = self._cursor.fetchone()[0]
        return number

    def is_live(self, epoch: str) -> bool:
        """Whether the process that `epoch` marks still runs."""
        return epoch == self.epoch or self._is_live(self, epoch)
