"""Statements, built in SQLAlchemy Core once per shape and kept as text with positional values.

Compiling a Core statement takes longer than running it. A shape is a table, a verb, the columns
and comparisons of its condition, an order and whether there is a limit; what differs between two
calls of one shape is values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ColumnElement

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Condition, Row
from agent_adapter.store.conditions import check_columns, listed, refuse_none, term
from agent_adapter.store.sql.schema import core_table
from agent_adapter.store.tables import TABLES, Table

__all__ = ["InsertIfAbsent", "Shape", "Statement", "Statements", "shape_of"]

InsertIfAbsent = Callable[[sa.Table], Any]
"""A dialect's `INSERT … ON CONFLICT DO NOTHING` for a table."""

Shape = tuple[tuple[str, int], ...]
"""Each written condition with how many values it binds; `-1` stands for `None`."""

_MOST_SHAPES = 4096
_PLACE = "place_"
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


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
            several = listed(written, value)
            shape.append((written, len(several)))
            values.extend(several)
        else:
            shape.append((written, 1))
            values.append(value)
    return tuple(shape), values


class Statement:
    """SQL text, and the order in which it takes its values.

    `order` names places among the values of a call; `constants` are added to them at the end.
    """

    __slots__ = ("_constants", "_order", "columns", "sql")

    def __init__(
        self, sql: str, order: Sequence[int], constants: Sequence[Any], columns: tuple[str, ...]
    ) -> None:
        self.sql = sql
        self.columns = columns
        self._constants = tuple(constants)
        in_place = not constants and list(order) == list(range(len(order)))
        self._order = None if in_place else tuple(order)

    def bound(self, values: Sequence[Any]) -> Sequence[Any]:
        """`values` as the statement takes them."""
        if self._order is None:
            return values
        several = (*values, *self._constants)
        return [several[i] for i in self._order]


class Statements:
    """The statements of one dialect; safe to share between threads."""

    def __init__(self, dialect: Dialect, insert_if_absent: InsertIfAbsent) -> None:
        self._dialect = dialect
        self._insert_if_absent = insert_if_absent
        self._declared: Mapping[str, Table] = {table.name: table for table in TABLES}
        self._known: dict[tuple[Any, ...], Statement] = {}
        self.blanks: Mapping[str, Row] = {
            table.name: dict.fromkeys(c.name for c in table.columns) for table in TABLES
        }

    def declared(self, table: str) -> Table:
        """The declaration of that name."""
        found = self._declared.get(table)
        if found is None:
            raise StoreError(f"no table {table!r}; there are {', '.join(self._declared)}")
        return found

    def get(self, table: str) -> Statement:
        """One row by its primary key."""
        return self._known.get(("get", table)) or self._keep(("get", table), self._get(table))

    def insert(self, table: str) -> Statement:
        """One whole row, unless its key exists."""
        return self._known.get(("insert", table)) or self._keep(
            ("insert", table), self._insert(table)
        )

    def update(self, table: str, columns: tuple[str, ...], shape: Shape) -> Statement:
        """New values for `columns`, then those of the condition."""
        key = ("update", table, columns, shape)
        return self._known.get(key) or self._keep(key, self._update(table, columns, shape))

    def delete(self, table: str, shape: Shape) -> Statement:
        """Every row that matches."""
        key = ("delete", table, shape)
        return self._known.get(key) or self._keep(key, self._delete(table, shape))

    def count(self, table: str, shape: Shape) -> Statement:
        """How many rows match."""
        key = ("count", table, shape)
        return self._known.get(key) or self._keep(key, self._count(table, shape))

    def select(
        self, table: str, shape: Shape, order: tuple[str, ...], *, descending: bool, limited: bool
    ) -> Statement:
        """Rows that match; the limit, where there is one, is the last value."""
        key = ("select", table, shape, order, descending, limited)
        return self._known.get(key) or self._keep(
            key, self._select(table, shape, order, descending=descending, limited=limited)
        )

    def _keep(self, key: tuple[Any, ...], statement: Statement) -> Statement:
        if len(self._known) >= _MOST_SHAPES:
            self._known.clear()
        self._known[key] = statement
        return statement

    def _get(self, table: str) -> Statement:
        declared = self.declared(table)
        core = core_table(declared)
        where = [core.c[name] == _bind(i) for i, name in enumerate(declared.key)]
        return self._compiled(sa.select(core).where(*where), declared)

    def _insert(self, table: str) -> Statement:
        declared = self.declared(table)
        core = core_table(declared)
        values = {c.name: _bind(i) for i, c in enumerate(declared.columns)}
        return self._compiled(self._insert_if_absent(core).values(values), declared)

    def _update(self, table: str, columns: tuple[str, ...], shape: Shape) -> Statement:
        declared = self.declared(table)
        check_columns(declared, columns)
        for name in declared.key:
            if name in columns:
                raise StoreError(
                    f"column {name!r} is of the key of {table!r} and is never changed;"
                    " delete the row and insert another"
                )
        values = {name: _bind(i) for i, name in enumerate(columns)}
        where = _conditions(declared, shape, len(columns))
        return self._compiled(
            sa.update(core_table(declared)).where(*where).values(values), declared
        )

    def _delete(self, table: str, shape: Shape) -> Statement:
        declared = self.declared(table)
        where = _conditions(declared, shape, 0)
        return self._compiled(sa.delete(core_table(declared)).where(*where), declared)

    def _count(self, table: str, shape: Shape) -> Statement:
        declared = self.declared(table)
        core = core_table(declared)
        where = _conditions(declared, shape, 0)
        return self._compiled(sa.select(sa.func.count()).select_from(core).where(*where), declared)

    def _select(
        self, table: str, shape: Shape, order: tuple[str, ...], *, descending: bool, limited: bool
    ) -> Statement:
        declared = self.declared(table)
        check_columns(declared, order)
        core = core_table(declared)
        query = sa.select(core).where(*_conditions(declared, shape, 0))
        by = [core.c[name].desc() if descending else core.c[name].asc() for name in order]
        query = query.order_by(*by)
        if limited:
            query = query.limit(_bind(sum(max(n, 0) for _, n in shape), sa.Integer()))
        return self._compiled(query, declared)

    def _compiled(self, statement: Any, declared: Table) -> Statement:
        compiled = statement.compile(dialect=self._dialect)
        names = list(compiled.positiontup or ())
        # A dialect may bind values of its own: SQLite's LIMIT always comes with `OFFSET 0`.
        own = [name for name in names if not name.startswith(_PLACE)]
        given = len(names) - len(own)
        order = [
            given + own.index(name) if name in own else int(name.removeprefix(_PLACE))
            for name in names
        ]
        constants = [compiled.params[name] for name in own]
        columns = tuple(column.name for column in declared.columns)
        return Statement(str(compiled), order, constants, columns)


def _bind(place: int, kind: Any = None) -> Any:
    return sa.bindparam(f"{_PLACE}{place}", type_=kind, required=False, value=None)


def _conditions(declared: Table, shape: Shape, start: int) -> list[ColumnElement[bool]]:
    core = core_table(declared)
    conditions: list[ColumnElement[bool]] = []
    place = start
    for written, count in shape:
        read = term(written)
        check_columns(declared, (read.column,))
        column = core.c[read.column]
        if count == -1:
            conditions.append(_with_none(column, written))
        elif read.comparison == "in":
            several = [_bind(place + i) for i in range(count)]
            conditions.append(column.in_(several) if several else sa.false())
            place += count
        else:
            conditions.append(_COMPARE[read.comparison](column, _bind(place)))
            place += 1
    return conditions


def _with_none(column: Any, written: str) -> ColumnElement[bool]:
    comparison = term(written).comparison
    if comparison == "=":
        return column.is_(None)  # type: ignore[no-any-return]  # Core's operators are untyped here
    if comparison == "!=":
        return column.is_not(None)  # type: ignore[no-any-return]  # as above
    raise refuse_none(written)
