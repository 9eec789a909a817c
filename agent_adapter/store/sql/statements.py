"""Statements, built in SQLAlchemy Core once per shape and kept as text with positional values.

Compiling a Core statement takes longer than running it. A shape is a table, a verb, the columns
and comparisons of its condition, an order and whether there is a limit; what differs between two
calls of one shape is values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ColumnElement

from agent_adapter.core.errors import StoreError
from agent_adapter.store.conditions import check_columns, refuse_none, term
from agent_adapter.store.sql.schema import core_table
from agent_adapter.store.sql.text_search import has_text_in
from agent_adapter.store.tables import TABLES, Table
from agent_adapter.store.witness import WITNESSED

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """SQL text, and the order in which it takes its values.

    `order` holds indexes into the values of a call, to which `constants` are added at the end;
    `None` means that the values are taken as they come. `columns` are those of the table.
    """

    sql: str
    declared: Table
    columns: tuple[str, ...]
    order: tuple[int, ...] | None
    constants: tuple[Any, ...]


class Statements(dict[tuple[Any, ...], Statement]):
    """The statements of one dialect, compiled when they are first looked up.

    Keys are `("get", table)`, `("insert", table)`, `("update", table, columns, shape)`,
    `("delete", table, shape)`, `("count", table, shape)` and
    `("select", table, shape, order, descending, limited)`. Safe to share between threads.
    """

    # A dictionary, so that finding a statement again enters no Python function.

    def __init__(self, dialect: Dialect, insert_if_absent: InsertIfAbsent) -> None:
        super().__init__()
        self._dialect = dialect
        self._insert_if_absent = insert_if_absent
        self._declared: Mapping[str, Table] = {table.name: table for table in TABLES}

    def __missing__(self, key: tuple[Any, ...]) -> Statement:
        declared = self._declared.get(key[1])
        if declared is None:
            raise StoreError(f"no table {key[1]!r}; there are {', '.join(self._declared)}")
        statement = self._compiled(self._built(declared, key), declared)
        if len(self) >= _MOST_SHAPES:
            self.clear()
        self[key] = statement
        return statement

    def _built(self, declared: Table, key: tuple[Any, ...]) -> Any:
        match key:
            case ("get", _):
                return _get(declared)
            case ("insert", _):
                values = {c.name: _bind(i) for i, c in enumerate(declared.columns)}
                return self._insert_if_absent(core_table(declared)).values(values)
            case ("update", _, columns, shape):
                return _update(declared, columns, shape)
            case ("delete", _, shape):
                deleted = sa.delete(core_table(declared)).where(*_conditions(declared, shape, 0))
                return _seen(declared, deleted)
            case ("count", _, shape):
                counted = sa.select(sa.func.count()).select_from(core_table(declared))
                return counted.where(*_conditions(declared, shape, 0))
            case ("select", _, shape, order, descending, limited):
                return self._select(declared, shape, order, descending, limited)
        raise StoreError(f"no statement {key[0]!r}")

    def _select(
        self,
        declared: Table,
        shape: Shape,
        order: tuple[str, ...],
        descending: bool,
        limited: bool,
    ) -> Any:
        check_columns(declared, order)
        core = core_table(declared)
        query = sa.select(core).where(*_conditions(declared, shape, 0))
        query = query.order_by(*(self._ordered(core.c[name], descending) for name in order))
        if limited:
            query = query.limit(_bind(sum(max(n, 0) for _, n in shape), sa.Integer()))
        return query

    def _ordered(self, column: Any, descending: bool) -> Any:
        by = column.desc() if descending else column.asc()
        if not column.nullable or self._dialect.name != "postgresql":
            return by
        # As everywhere else None comes before every value.
        return by.nulls_last() if descending else by.nulls_first()

    def _compiled(self, statement: Any, declared: Table) -> Statement:
        compiled = statement.compile(dialect=self._dialect)
        names = list(compiled.positiontup or ())
        # A dialect may bind values of its own: SQLite's LIMIT always comes with `OFFSET 0`.
        own = [name for name in names if not name.startswith(_PLACE)]
        given = len(names) - len(own)
        order = tuple(
            given + own.index(name) if name in own else int(name.removeprefix(_PLACE))
            for name in names
        )
        in_place = not own and order == tuple(range(len(order)))
        return Statement(
            sql=str(compiled),
            declared=declared,
            columns=tuple(column.name for column in declared.columns),
            order=None if in_place else order,
            constants=tuple(compiled.params[name] for name in own),
        )


def _get(declared: Table) -> Any:
    core = core_table(declared)
    where = [core.c[name] == _bind(i) for i, name in enumerate(declared.key)]
    return sa.select(core).where(*where)


def _update(declared: Table, columns: tuple[str, ...], shape: Shape) -> Any:
    check_columns(declared, columns)
    for name in declared.key:
        if name in columns:
            raise StoreError(
                f"column {name!r} is of the key of {declared.name!r} and is never changed;"
                " delete the row and insert another"
            )
    values = {name: _bind(i) for i, name in enumerate(columns)}
    where = _conditions(declared, shape, len(columns))
    return _seen(declared, sa.update(core_table(declared)).where(*where).values(values))


def _seen(declared: Table, change: Any) -> Any:
    """Return the rows that the ledger vouches for, so that it knows what they became."""
    return change.returning(core_table(declared)) if declared.name in WITNESSED else change


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
        elif read.comparison == "has":
            conditions.append(has_text_in(declared, read.column, _bind(place)))
            place += 1
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
