"""One table in memory: rows by primary key, hash indexes made when a look-up first needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import eq, ge, gt, itemgetter, le, lt, ne
from typing import Any

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Condition, Row
from agent_adapter.store.conditions import Term, check_columns, has_text, listed, refuse_none, term
from agent_adapter.store.memory.ordered import OrderedIndex, place_of
from agent_adapter.store.tables import Table

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


class _Index:
    """Primary keys by the values of some columns."""

    __slots__ = ("buckets", "columns", "of")

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = frozenset(columns)
        self.of = itemgetter(*columns)
        self.buckets: dict[Any, dict[Any, None]] = {}

    def add(self, key: Any, row: Row) -> None:
        bucket = self.buckets.get(self.of(row))
        if bucket is None:
            self.buckets[self.of(row)] = {key: None}
        else:
            bucket[key] = None

    def remove(self, key: Any, row: Row) -> None:
        value = self.of(row)
        bucket = self.buckets[value]
        del bucket[key]
        if not bucket:
            del self.buckets[value]


class _Plan:
    """How the rows of one shape of condition are found."""

    __slots__ = ("by_key", "index", "last", "rest", "wanted")

    def __init__(
        self,
        *,
        by_key: bool,
        index: _Index | None,
        wanted: Callable[[Condition], Any] | None,
        rest: tuple[str, ...],
        last: str | None = None,
    ) -> None:
        self.by_key = by_key
        self.last = last
        self.index = index
        self.wanted = wanted
        self.rest = rest


class _Walk:
    """How the rows of one shape of condition are read in order."""

    __slots__ = ("_above", "_below", "_index", "_prefix", "_wanted", "rest")

    def __init__(
        self, index: OrderedIndex, prefix: tuple[str, ...], by: str, terms: Mapping[str, Term]
    ) -> None:
        self._index = index
        self._prefix = prefix
        self._wanted = itemgetter(*prefix) if prefix else None
        ranges = {t.comparison: written for written, t in terms.items() if t.column == by}
        self._above = next(((ranges[c], c == ">=") for c in (">", ">=") if c in ranges), None)
        self._below = next(((ranges[c], c == "<=") for c in ("<", "<=") if c in ranges), None)
        used = {edge[0] for edge in (self._above, self._below) if edge is not None}
        self.rest = tuple(w for w in terms if w not in used and w not in prefix)

    def keys(self, where: Condition, *, descending: bool) -> Iterator[Any]:
        """Keys in order, within the range that the condition asks for."""
        wanted = () if self._wanted is None else self._wanted(where)
        above, below = (
            None if edge is None else (_bound(edge[0], where[edge[0]]), edge[1])
            for edge in (self._above, self._below)
        )
        return self._index.walk(wanted, descending=descending, above=above, below=below)


class MemoryTable:
    """The rows of one table; every row that comes in or goes out is a copy."""

    __slots__ = (
        "_blank",
        "_indexes",
        "_ordered",
        "_plans",
        "_reals",
        "_settable",
        "_walks",
        "declared",
        "key_of",
        "key_width",
        "rows",
    )

    def __init__(self, declared: Table) -> None:
        self.declared = declared
        self.rows: dict[Any, Row] = {}
        self.key_of = itemgetter(*declared.key)
        self.key_width = len(declared.key)
        self._blank: Row = dict.fromkeys(column.name for column in declared.columns)
        self._settable = frozenset(self._blank) - frozenset(declared.key)
        self._reals = tuple(c.name for c in declared.columns if c.kind == "real")
        self._indexes: dict[tuple[str, ...], _Index] = {}
        self._plans: dict[tuple[str, ...], _Plan] = {}
        self._ordered: dict[tuple[tuple[str, ...], str], OrderedIndex] = {}
        self._walks: dict[tuple[tuple[str, ...], str], _Walk | None] = {}

    def whole(self, row: Row) -> Row:
        """A copy of `row` with every column; `StoreError` for one that the table lacks."""
        full = {**self._blank, **row}
        if len(full) != len(self._blank):
            check_columns(self.declared, row)
        for name in self._reals:
            if type(full[name]) is int:
                full[name] = float(full[name])
        return full

    def checked(self, values: Row) -> Row:
        """Values that an update may set; `StoreError` for an unknown column or one of the key."""
        for name in values:
            if name not in self._settable:
                check_columns(self.declared, values)
                raise StoreError(
                    f"column {name!r} is of the key of {self.declared.name!r} and is never changed;"
                    " delete the row and insert another"
                )
        for name in self._reals:
            if type(values.get(name)) is int:
                values = {**values, name: float(values[name])}
        return values

    def put(self, key: Any, row: Row) -> Row | None:
        """Store `row` itself, not a copy, under `key`; the row that was there."""
        old = self.rows.get(key)
        self.rows[key] = row
        if old is None:
            for each in self._indexes.values():
                each.add(key, row)
            for each_ordered in self._ordered.values():
                each_ordered.add(key, row)
            return None
        for index in self._indexes.values():
            if index.of(old) != index.of(row):
                index.remove(key, old)
                index.add(key, row)
        for ordered in self._ordered.values():
            if not ordered.holds(old, row):
                ordered.remove(key, old)
                ordered.add(key, row)
        return old

    def remove(self, key: Any) -> Row:
        """Take the row away and return it."""
        row = self.rows.pop(key)
        for index in self._indexes.values():
            index.remove(key, row)
        for ordered in self._ordered.values():
            ordered.remove(key, row)
        return row

    def find(self, where: Condition | None) -> list[tuple[Any, Row]]:
        """Key and stored row of every match."""
        if not where:
            return list(self.rows.items())
        shape = tuple(where)
        plan = self._plans.get(shape) or self._plan(shape)
        found = self._candidates(plan, where)
        for written in plan.rest:
            found = _narrowed(found, written, where[written])
        return found if isinstance(found, list) else list(found)

    def first(
        self, where: Condition, by: str, limit: int, *, descending: bool
    ) -> list[tuple[Any, Row]] | None:
        """The first `limit` matches in the order of `by`, read from an index that is so ordered.

        `None` where no declared index has that order.
        """
        key = (tuple(where), by)
        walk = self._walks.get(key)
        if walk is None and key not in self._walks:
            walk = self._walks[key] = self._walk(*key)
        if walk is None:
            return None
        found: list[tuple[Any, Row]] = []
        for at in walk.keys(where, descending=descending):
            if len(found) >= limit:
                break
            pair = (at, self.rows[at])
            if not walk.rest or _fits(pair, walk.rest, where):
                found.append(pair)
        return found

    def _walk(self, shape: tuple[str, ...], by: str) -> _Walk | None:
        terms = {written: term(written) for written in shape}
        equal = {t.column: written for written, t in terms.items() if t.comparison == "="}
        # Another index may find few rows where this one would walk over many.
        least = len(self._longest_prefix(equal))
        for columns in (self.declared.key, *self.declared.indexes):
            if by not in columns:
                continue
            prefix = columns[: columns.index(by)]
            if len(prefix) >= least and all(column in equal for column in prefix):
                index = self._ordered.get((prefix, by)) or self._order(prefix, by)
                return _Walk(index, tuple(equal[c] for c in prefix), by, terms)
        return None

    def _order(self, prefix: tuple[str, ...], by: str) -> OrderedIndex:
        index = self._ordered[(prefix, by)] = OrderedIndex(prefix, by)
        for key, row in self.rows.items():
            index.add(key, row)
        return index

    def _candidates(self, plan: _Plan, where: Condition) -> Iterable[tuple[Any, Row]]:
        if plan.wanted is None:
            return self.rows.items()
        wanted = plan.wanted(where)
        if plan.last is not None:
            first = wanted if isinstance(wanted, tuple) else (wanted,)
            given = listed(plan.last, where[plan.last])
            ends = dict.fromkeys(value for value in given if value is not None)
            found = [(*first, end) for end in ends] if first else list(ends)
            if plan.index is not None:
                found = [key for each in found for key in plan.index.buckets.get(each, ())]
            return [(key, self.rows[key]) for key in found if key in self.rows]
        if plan.by_key:
            row = self.rows.get(wanted)
            return [] if row is None else [(wanted, row)]
        assert plan.index is not None  # noqa: S101 - a plan has one or the other
        rows = self.rows
        return [(key, rows[key]) for key in plan.index.buckets.get(wanted, ())]

    def _plan(self, shape: tuple[str, ...]) -> _Plan:
        """The longest prefix of a key or an index whose columns are all compared for equality."""
        terms = {written: term(written) for written in shape}
        check_columns(self.declared, (t.column for t in terms.values()))
        equal = {t.column: written for written, t in terms.items() if t.comparison == "="}
        several = {t.column: written for written, t in terms.items() if t.comparison == "in"}
        first, last = self.declared.key[:-1], self.declared.key[-1]
        if last in several and all(column in equal for column in first):
            # All but the end of the key is given, and the ends are listed: each row by its key.
            plan = _listing(shape, equal, first, several[last], None)
        else:
            plan = self._index_plan(shape, equal, several)
        self._plans[shape] = plan
        return plan

    def _index_plan(
        self, shape: tuple[str, ...], equal: dict[str, str], several: dict[str, str]
    ) -> _Plan:
        prefix = self._longest_prefix(equal)
        by_key = prefix == self.declared.key
        last = None if by_key else self._listed_next(prefix, several)
        if last is not None:
            return _listing(shape, equal, prefix, several[last], self._index((*prefix, last)))
        used = tuple(equal[column] for column in prefix)
        return _Plan(
            by_key=by_key,
            index=self._index(prefix) if prefix and not by_key else None,
            wanted=itemgetter(*used) if prefix else None,
            rest=tuple(written for written in shape if written not in used),
        )

    def _longest_prefix(self, equal: dict[str, str]) -> tuple[str, ...]:
        best: tuple[str, ...] = ()
        for columns in (self.declared.key, *self.declared.indexes):
            length = 0
            while length < len(columns) and columns[length] in equal:
                length += 1
            if length > len(best):
                best = columns[:length]
        return best

    def _listed_next(self, prefix: tuple[str, ...], several: dict[str, str]) -> str | None:
        """The column that an index has behind the prefix and that a list of values is given for."""
        width = len(prefix)
        longer = (c for c in self.declared.indexes if c[:width] == prefix and len(c) > width)
        return next((c[width] for c in longer if c[width] in several), None)

    def _index(self, columns: tuple[str, ...]) -> _Index:
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = _Index(columns)
            for key, row in self.rows.items():
                index.add(key, row)
        return index

    def ordered(
        self, found: list[tuple[Any, Row]], order_by: str | Sequence[str], *, descending: bool
    ) -> list[tuple[Any, Row]]:
        """`found`, sorted by the named columns; `None` comes before every value, as in SQLite."""
        names = (order_by,) if isinstance(order_by, str) else tuple(order_by)
        check_columns(self.declared, names)

        def place(pair: tuple[Any, Row]) -> list[tuple[bool, Any]]:
            return [place_of(pair[1][name]) for name in names]

        return sorted(found, key=place, reverse=descending)


def _listing(
    shape: tuple[str, ...],
    equal: dict[str, str],
    first: tuple[str, ...],
    last: str,
    index: _Index | None,
) -> _Plan:
    used = tuple(equal[column] for column in first)
    return _Plan(
        by_key=False,
        index=index,
        wanted=itemgetter(*used) if used else _no_values,
        rest=tuple(written for written in shape if written not in used and written != last),
        last=last,
    )


def _no_values(where: Condition) -> tuple[()]:
    return ()


def _fits(pair: tuple[Any, Row], rest: tuple[str, ...], where: Condition) -> bool:
    return all(_narrowed((pair,), written, where[written]) for written in rest)


def _bound(written: str, value: Any) -> Any:
    if value is None:
        raise refuse_none(written)
    return value


def _narrowed(found: Iterable[tuple[Any, Row]], written: str, value: Any) -> list[tuple[Any, Row]]:
    read = term(written)
    name = read.column
    if read.comparison == "in":
        values = {v for v in listed(written, value) if v is not None}
        return [pair for pair in found if pair[1][name] in values]
    if value is None:
        if read.comparison == "=":
            return [pair for pair in found if pair[1][name] is None]
        if read.comparison == "!=":
            return [pair for pair in found if pair[1][name] is not None]
        raise refuse_none(written)
    if read.comparison == "has":
        return [pair for pair in found if has_text(pair[1][name], value)]
    compare = _COMPARE[read.comparison]
    return [pair for pair in found if pair[1][name] is not None and compare(pair[1][name], value)]
