"""The tables inside one operation, over a cursor of a database driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Condition, Entry, Row
from agent_adapter.store.conditions import check_columns, listed
from agent_adapter.store.sql.statements import Shape, Statement, Statements
from agent_adapter.store.text import MARK, escape, unescape
from agent_adapter.store.uptime import Uptime
from agent_adapter.store.witness import WITNESSED, Touched


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
"""Whether the process with that owner id still runs; may read the tables."""


class SqlTransaction:
    """One per connection, used again for every operation; `wrote` counts the rows changed."""

    __slots__ = (
        "_cursor",
        "_is_live",
        "_statements",
        "key",
        "memo",
        "memo_lasts",
        "now",
        "owner_id",
        "pending",
        "touched",
        "uptime",
        "wrote",
    )

    def __init__(
        self,
        cursor: Cursor,
        statements: Statements,
        *,
        key: bytes,
        owner_id: str,
        is_live: IsLive,
        uptime: Uptime,
    ) -> None:
        self._cursor = cursor
        self._statements = statements
        self._is_live = is_live
        self.key = key
        self.owner_id = owner_id
        self.memo: dict[Any, Row] = {}
        self.memo_lasts = False
        self.touched: Touched = {}
        self.pending: list[Entry] = []
        self.now = 0.0
        self.uptime = uptime
        self.wrote = 0

    def get(self, table: str, *key: Any) -> Row | None:
        """The row with that primary key."""
        statement = self._statements["get", table]
        if len(key) != len(statement.declared.key):
            raise StoreError(f"the key of {table!r} is ({', '.join(statement.declared.key)})")
        self._cursor.execute(statement.sql, gated(key))
        row = self._cursor.fetchone()
        return None if row is None else row_of(statement, row)

    def insert(self, table: str, row: Row) -> bool:
        """Add the row unless its key exists."""
        statement = self._statements["insert", table]
        full = self._whole(statement, row)
        added = self._change(statement, list(full.values())) == 1
        if added and table in WITNESSED:
            self._touch(statement, full, there=True)
        return added

    def update(self, table: str, where: Condition, values: Row) -> int:
        """Set `values` in every matching row."""
        shape, wanted = shape_of(where)
        statement = self._statements["update", table, tuple(values), shape]
        if table in WITNESSED:
            return self._change_seen(statement, [*values.values(), *wanted], there=True)
        return self._change(statement, [*values.values(), *wanted])

    def delete(self, table: str, where: Condition) -> int:
        """Remove every matching row."""
        shape, wanted = shape_of(where)
        statement = self._statements["delete", table, shape]
        if table in WITNESSED:
            return self._change_seen(statement, wanted, there=False)
        return self._change(statement, wanted)

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
        limited = limit is not None
        statement = self._statements["select", table, shape, order, descending, limited]
        if limited:
            wanted.append(limit)
        self._cursor.execute(statement.sql, in_order(statement, wanted))
        return [row_of(statement, row) for row in self._cursor.fetchall()]

    def count(self, table: str, where: Condition | None = None) -> int:
        """How many rows match."""
        shape, wanted = shape_of(where)
        statement = self._statements["count", table, shape]
        self._cursor.execute(statement.sql, in_order(statement, wanted))
        number: int = self._cursor.fetchone()[0]
        return number

    def is_live(self, owner_id: str) -> bool:
        """Whether the process with that owner id still runs."""
        return owner_id == self.owner_id or self._is_live(self, owner_id)

    def _whole(self, statement: Statement, row: Row) -> Row:
        """The row with every column of its table."""
        declared = statement.declared
        full: Row = dict.fromkeys(statement.columns)
        full.update(row)
        if len(full) != len(statement.columns):
            check_columns(declared, row)
        for name in declared.key:
            if full[name] is None:
                key = ", ".join(declared.key)
                raise StoreError(f"a row of {declared.name!r} needs all of ({key})")
        return full

    def _change(self, statement: Statement, values: Sequence[Any]) -> int:
        self._cursor.execute(statement.sql, in_order(statement, values))
        changed = self._cursor.rowcount
        self.wrote += changed
        return changed

    def _change_seen(self, statement: Statement, values: Sequence[Any], *, there: bool) -> int:
        """Change rows of a witnessed table; the statement returns them."""
        self._cursor.execute(statement.sql, in_order(statement, values))
        changed = self._cursor.fetchall()
        for row in changed:
            self._touch(statement, row_of(statement, row), there=there)
        self.wrote += len(changed)
        return len(changed)

    def _touch(self, statement: Statement, row: Row, *, there: bool) -> None:
        declared = statement.declared
        key = (
            row[declared.key[0]] if len(declared.key) == 1 else tuple(row[k] for k in declared.key)
        )
        self.touched[declared.name, key] = (row, there)


def shape_of(where: Condition | None) -> tuple[Shape, list[Any]]:
    """The shape of a condition and its values in order."""
    if not where:
        return (), []
    shape = []
    values = []
    for written, value in where.items():
        if value is None:
            shape.append((written, -1))
        elif written.endswith(" in"):
            several = value if isinstance(value, list) else listed(written, value)
            shape.append((written, len(several)))
            values.extend(several)
        else:
            shape.append((written, 1))
            values.append(value)
    return tuple(shape), values


def in_order(statement: Statement, values: Sequence[Any]) -> Sequence[Any]:
    """`values` in the order in which the statement takes them."""
    values = gated(values)
    if statement.order is None:
        return values
    several = (*values, *statement.constants)
    return [several[i] for i in statement.order]


def gated(values: Sequence[Any]) -> list[Any]:
    """The values with every text as a database can keep it."""
    return [
        escape(value)
        if isinstance(value, str) and not (value.isascii() and "\x00" not in value)
        else value
        for value in values
    ]


def row_of(statement: Statement, values: Sequence[Any]) -> Row:
    """A row by column, with every text as it was given."""
    row = dict(zip(statement.columns, values, strict=True))
    for name, value in row.items():
        if type(value) is str and MARK in value:
            row[name] = unescape(value)
    return row
