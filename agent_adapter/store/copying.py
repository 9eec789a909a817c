"""Every row of a store, page by page, and how a page is added to another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.tables import TABLES, Table

PAGE = 500
"""Rows that are held in memory at a time."""

NOT_COPIED = frozenset({"owners"})
"""Tables of what is true of one database alone: the processes that use it."""

_MADE_AT_OPENING = frozenset({"owners", "meta"})


def filled(tx: Transaction) -> list[str]:
    """The tables that hold rows which no new store has."""
    found = [t.name for t in TABLES if t.name not in _MADE_AT_OPENING and tx.count(t.name)]
    return found + ["meta"] * (tx.count("meta") > 1)


def counts(tx: Transaction) -> dict[str, int]:
    """How many rows each copied table holds."""
    return {table.name: tx.count(table.name) for table in TABLES if table.name not in NOT_COPIED}


def pages(tx: Transaction) -> Iterator[tuple[str, list[Row]]]:
    """All rows, as pages of one table each, in the order of their keys."""
    for table in TABLES:
        if table.name not in NOT_COPIED:
            for page in _pages(tx, table, {}, table.key):
                yield table.name, page


def _pages(tx: Transaction, table: Table, within: Row, key: tuple[str, ...]) -> Iterator[list[Row]]:
    """The rows with these first columns of the key, ordered by the others."""
    by, rest = key[0], key[1:]
    after: Row = {}
    while found := tx.select(
        table.name, {**within, **after}, order_by=by, limit=1 if rest else PAGE
    ):
        last: Any = found[-1][by]
        if rest:
            yield from _pages(tx, table, {**within, by: last}, rest)
        else:
            yield found
        after = {f"{by} >": last}


def add(tx: Transaction, table: str, rows: list[Row]) -> None:
    """Add rows as they are; the ledger's entries about them are copied too."""
    for row in rows:
        tx.insert(table, row)
    # They are no change: what vouches for them comes with them.
    tx.touched.clear()
    tx.memo.clear()


def wipe(tx: Transaction) -> None:
    """Remove what was added to a store that was empty."""
    for table in TABLES:
        if table.name not in _MADE_AT_OPENING:
            tx.delete(table.name, {})
    tx.delete("meta", {"name !=": "key-check"})
    tx.touched.clear()
    tx.memo.clear()
