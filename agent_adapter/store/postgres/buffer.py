"""Fewer round trips: the reads of a batch in one, its new and changed rows in one per table.

A round trip costs more than the statement in it. Operations say which reads they will make
(`reads`): these are sent together when the transaction begins, and each is answered from there if
nothing that the batch has written since could change the answer. Rows of a few tables are kept back
until the end, on the assumption that no row with their key exists: where one does, the batch is
taken back and runs again statement by statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import psycopg

from agent_adapter.store.base import OWNER, Condition, Operation, Read, Row
from agent_adapter.store.postgres import sets
from agent_adapter.store.postgres.connection import PostgresCursor, Query, is_later
from agent_adapter.store.postgres.locks import LockedTransaction
from agent_adapter.store.sql.statements import Statement
from agent_adapter.store.sql.transaction import gated, in_order, row_of, shape_of
from agent_adapter.store.witness import WITNESSED

KEPT_BACK = frozenset({"calls", "ledger", "chain_heads", "payloads", "runs"})
"""Tables of the operations that begin and end calls."""

Key = tuple[Any, ...]


_insertion, _change, _by_key = (cache(one) for one in (sets.insertion, sets.change, sets.by_key))


class BufferRefused(Exception):
    """What was kept back cannot be written so; the batch runs again statement by statement."""


class BufferedTransaction(LockedTransaction):
    """A transaction that keeps rows back while it is `buffering`."""

    __slots__ = (
        "_answers",
        "_changes",
        "_direct",
        "_known",
        "_new",
        "_wire",
        "_written",
        "buffering",
    )

    def __init__(self, cursor: PostgresCursor, *args: Any, **more: Any) -> None:
        super().__init__(cursor, *args, **more)
        self._wire = cursor
        self.start(buffering=False)

    def start(self, *, buffering: bool) -> None:
        """Forget what an earlier transaction knew and kept back."""
        self.buffering = buffering
        self._answers: dict[tuple[str, Key], list[Any]] = {}
        self._known: dict[tuple[str, Key], Row | None] = {}
        self._new: dict[str, dict[Key, Row]] = {}
        self._changes: dict[str, dict[Key, tuple[Row, set[str]]]] = {}
        # Every version of a row that was kept back: an answer it might belong to is not used.
        self._written: dict[str, list[Row]] = {}
        self._direct: set[str] = set()

    def begin(self, ops: Sequence[Operation[Any]], first: Sequence[Query]) -> list[Any]:
        """Send `first`, and then the reads that the operations will make, in one round trip.

        Gives the row of the last of `first`.
        """
        queries: dict[tuple[str, Key], Read] = {}
        keys: dict[str, set[Any]] = {}
        for read in _reads_of(ops) if self.buffering else ():
            if read.key is not None:
                keys.setdefault(read.table, set()).add(read.key[0])
            else:
                statement, values = self._statement_of(read)
                queries[statement.sql, tuple(values)] = read
        by_key = [(_by_key(table), [gated(sorted(found))]) for table, found in keys.items()]
        with _refusing() if keys or queries else contextlib.nullcontext():
            answers = self._wire.fetch_many([*first, *by_key, *queries])
        row: list[Any] = answers[len(first) - 1][0]
        del answers[: len(first)]
        for table, found in keys.items():
            self._learn(table, found, answers.pop(0))
        self._answers.update(zip(queries, answers, strict=True))
        return row

    def _learn(self, table: str, keys: set[Any], rows: list[Any]) -> None:
        """These are the rows with the keys; there are no others."""
        statement = self._statements["get", table]
        (name,) = statement.declared.key
        found = {row[name]: row for row in (row_of(statement, values) for values in rows)}
        self._known.update({(table, (key,)): found.get(key) for key in keys})

    def get(self, table: str, *key: Any) -> Row | None:
        """The row with that primary key."""
        if self.buffering and table not in self._direct:
            if table in KEPT_BACK and (kept := self._kept(table, key)) is not None:
                return kept.copy()
            if (table, key) in self._known:
                row = self._known[table, key]
                return None if row is None else row.copy()
        return super().get(table, *key)

    def insert(self, table: str, row: Row) -> bool:
        """Add the row unless its key exists."""
        if not self.buffering or table not in KEPT_BACK or table in self._direct:
            self._write_through(table)
            return super().insert(table, row)
        statement = self._statements["insert", table]
        full = self._whole(statement, row)
        if table == "chain_heads":
            self._check(row["run_id"])
        key = tuple(full[name] for name in statement.declared.key)
        if self._kept(table, key) is not None or self._known.get((table, key)) is not None:
            return False
        self._new.setdefault(table, {})[key] = full
        self._note(table, full)
        self._touch_kept(statement, full)
        return True

    def update(self, table: str, where: Condition, values: Row) -> int:
        """Set `values` in every matching row."""
        if self.buffering and table in KEPT_BACK and table not in self._direct:
            changed = self._change_kept(table, where, values)
            if changed is not None:
                return changed
        self._write_through(table)
        return super().update(table, where, values)

    def delete(self, table: str, where: Condition) -> int:
        """Remove every matching row."""
        self._write_through(table)
        return super().delete(table, where)

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
        if self.buffering:
            if self._may_be_kept(table, where or {}):
                self.flush(table)
            elif table == "meta" and (named := self._all_known(table, where or {})) is not None:
                return named
            elif self._answers and table not in self._direct:
                read = Read(table, where or {}, order_by, descending, limit)
                statement, values = self._statement_of(read)
                answer = self._answers.get((statement.sql, tuple(values)))
                if answer is not None:
                    return [row_of(statement, row) for row in answer]
        return super().select(table, where, order_by=order_by, descending=descending, limit=limit)

    def _all_known(self, table: str, where: Condition) -> list[Row] | None:
        """The rows with one of several keys, in their order, where each of them is known."""
        ((written, keys), *more) = where.items() if where else ((None, ()),)
        if more or written != "name in" or table in self._direct:
            return None
        if any((table, (key,)) not in self._known for key in keys):
            return None
        rows = (self._known[table, (key,)] for key in keys)
        return [row.copy() for row in rows if row is not None]

    def count(self, table: str, where: Condition | None = None) -> int:
        """How many rows match."""
        if self.buffering and self._may_be_kept(table, where or {}):
            self.flush(table)
        return super().count(table, where)

    def flush(self, table: str) -> None:
        """Write what was kept back of a table."""
        with _refusing():
            for statement, values in self._kept_back(table):
                self._wire.execute(statement, values)

    def commit(self) -> str | None:
        """Write what was kept back and commit, in one round trip; what the server says."""
        kept = [one for table in {*self._new, *self._changes} for one in self._kept_back(table)]
        with _refusing() if kept else contextlib.nullcontext():
            return self._wire.commit(kept)

    def _kept_back(self, table: str) -> Iterator[Query]:
        """The statements that write the table's rows, which are known from then on."""
        new = self._new.pop(table, {})
        changes = self._changes.pop(table, {})
        if new:
            rows = list(new.values())
            yield _insertion(table), sets.arrays(table, list(rows[0]), rows)
        names = self._statements["get", table].declared.key
        by_columns: dict[tuple[str, ...], list[Row]] = {}
        for row, columns in changes.values():
            by_columns.setdefault(tuple(sorted(columns)), []).append(row)
        for named, rows in by_columns.items():
            yield _change(table, named), sets.arrays(table, [*names, *named], rows)
        self._known.update({(table, key): row for key, row in new.items()})
        self._known.update({(table, key): row for key, (row, _) in changes.items()})

    def _statement_of(self, read: Read) -> tuple[Statement, Sequence[Any]]:
        if read.key is not None:
            return self._statements["get", read.table], gated(read.key)
        own = self.owner_id
        shape, values = shape_of(
            {name: own if value is OWNER else value for name, value in read.where.items()}
        )
        order = (read.order_by,) if isinstance(read.order_by, str) else tuple(read.order_by)
        limited = read.limit is not None
        statement = self._statements["select", read.table, shape, order, read.descending, limited]
        if limited:
            values.append(read.limit)
        return statement, in_order(statement, values)

    def _kept(self, table: str, key: Key) -> Row | None:
        found = self._new.get(table, {}).get(key)
        if found is None and (changed := self._changes.get(table, {}).get(key)) is not None:
            return changed[0]
        return found

    def _change_kept(self, table: str, where: Condition, values: Row) -> int | None:
        """Change one row that is known by its key; `None` where it is not known."""
        statement = self._statements["get", table]
        names = statement.declared.key
        if any(where.get(name) is None for name in names) or any(" " in name for name in where):
            return None
        if not values.keys() <= set(statement.columns) or set(names) & values.keys():
            return None  # refused where it is written
        key = tuple(where[name] for name in names)
        row = self._kept(table, key) or self._known.get((table, key))
        if row is None:
            return 0 if (table, key) in self._known else None
        if any(row.get(name) != value for name, value in where.items()):
            return 0
        if table == "chain_heads":
            self._check(str(row["run_id"]))
        changed = row | values
        new = self._new.get(table, {})
        if key in new:
            new[key] = changed
        else:
            _, columns = self._changes.get(table, {}).get(key, (row, set()))
            self._changes.setdefault(table, {})[key] = changed, columns | values.keys()
            self._note(table, row)
        self._note(table, changed)
        self._touch_kept(statement, changed)
        return 1

    def _note(self, table: str, row: Row) -> None:
        self._written.setdefault(table, []).append(row)
        self.changed.add(table)

    def _touch_kept(self, statement: Statement, row: Row) -> None:
        self.wrote += 1
        if statement.declared.name in WITNESSED:
            self._touch(statement, row, there=True)

    def _may_be_kept(self, table: str, where: Condition) -> bool:
        """Whether a row that this transaction has written could be an answer, or has been one."""
        written = self._written.get(table)
        if not written:
            return False
        plain = [(name, value) for name, value in where.items() if " " not in name]
        other = [(name[:-3], value) for name, value in where.items() if name.endswith(" !=")]
        return any(
            all(row.get(name) == value for name, value in plain)
            and all(row.get(name) != value for name, value in other)
            for row in written
        )

    def _write_through(self, table: str) -> None:
        """Another statement is about to change the table: nothing is known of it any more."""
        if self.buffering and table not in self._direct:
            self.flush(table)
            self._direct.add(table)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Which operation is at fault is not known here: they run again, one statement at a time."""
    try:
        yield
    except (psycopg.Error, ValueError, TypeError, OverflowError) as error:
        if is_later(error):
            raise
        raise BufferRefused from error


def _reads_of(ops: Iterable[Operation[Any]]) -> Iterator[Read]:
    for op in ops:
        reads = getattr(op, "reads", None)
        if reads is not None:
            yield from reads()
