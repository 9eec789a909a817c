"""Rows of a memory table kept in order, so that the first few of many cost a few."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from agent_adapter.store.base import Row

_Place = tuple[bool, Any]


def place_of(value: Any) -> _Place:
    """Where a value stands in an order; `None` comes before every value, as in SQLite."""
    return (False, 0) if value is None else (True, value)


class OrderedIndex:
    """Primary keys by the values of some columns, in the order of one more column."""

    __slots__ = ("_buckets", "_by", "_of")

    def __init__(self, columns: tuple[str, ...], by: str) -> None:
        self._of = itemgetter(*columns) if columns else _nothing
        self._by = by
        self._buckets: dict[Any, list[tuple[_Place, Any]]] = {}

    def add(self, key: Any, row: Row) -> None:
        """Take in a row; at the end of its bucket this costs no search."""
        bucket = self._buckets.setdefault(self._of(row), [])
        entry = (place_of(row[self._by]), key)
        if not bucket or bucket[-1] < entry:
            bucket.append(entry)
        else:
            insort(bucket, entry)

    def remove(self, key: Any, row: Row) -> None:
        """Forget a row."""
        value = self._of(row)
        bucket = self._buckets[value]
        del bucket[bisect_left(bucket, (place_of(row[self._by]), key))]
        if not bucket:
            del self._buckets[value]

    def holds(self, old: Row, new: Row) -> bool:
        """Whether a row that changes from `old` to `new` keeps its place."""
        return bool(old[self._by] == new[self._by] and self._of(old) == self._of(new))

    def walk(self, wanted: Any, *, descending: bool, above: Any, below: Any) -> Iterator[Any]:
        """Keys of one bucket in order; `above` and `below` are `(value, inclusive)` or `None`."""
        bucket = self._buckets.get(wanted, [])
        start, end = 0, len(bucket)
        if above is not None:
            start = _edge(bucket, above[0], after=not above[1])
        if below is not None:
            end = _edge(bucket, below[0], after=below[1])
            # A comparison holds for no `None`, and those stand first.
            start = max(start, bisect_left(bucket, (True,), key=itemgetter(0)))
        places = range(end - 1, start - 1, -1) if descending else range(start, end)
        for at in places:
            yield bucket[at][1]


def _edge(bucket: list[tuple[_Place, Any]], value: Any, *, after: bool) -> int:
    place = place_of(value)
    cut = bisect_right if after else bisect_left
    return cut(bucket, place, key=itemgetter(0))


def _nothing(row: Row) -> tuple[()]:
    return ()
