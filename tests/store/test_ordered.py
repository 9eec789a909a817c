"""Reading the first few rows of many in memory."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter.store.base import Condition, Row, Transaction
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.memory.table import MemoryTable
from agent_adapter.store.tables import APPROVALS, CALLS

TIMES = st.one_of(st.none(), st.integers(0, 9).map(float))


def call(key: str, n: int) -> Row:
    """One call of a run in which all calls are alike."""
    return {"call_key": key, "run_id": "r", "tool": "t", "digest": "d", "n": n}


def table_of(rows: list[tuple[str, float | None]]) -> MemoryTable:
    """A table of approvals with these states and times, in which some were changed and removed."""
    table = MemoryTable(APPROVALS)
    table.first({"state": "pending"}, "created_at", 1, descending=False)
    for number, (state, at) in enumerate(rows):
        key = f"a{number:03}"
        table.put(key, table.whole({"id": key, "state": "pending", "created_at": at}))
        table.put(key, table.whole({"id": key, "state": state, "created_at": at}))
        if number % 5 == 4:
            table.remove(key)
    return table


@given(
    rows=st.lists(st.tuples(st.sampled_from(["pending", "taken"]), TIMES), max_size=30),
    bounds=st.dictionaries(st.sampled_from(["<", "<=", ">", ">="]), st.integers(0, 9), max_size=2),
    descending=st.booleans(),
    limit=st.integers(0, 8),
)
def test_the_first_rows_are_those_of_a_sort(
    rows: list[tuple[str, float | None]],
    bounds: dict[str, int],
    descending: bool,
    limit: int,
) -> None:
    """An ordered index gives the times that searching and sorting would give."""
    table = table_of(rows)
    where: dict[str, Any] = {"state": "pending"}
    where |= {f"created_at {sign}": float(value) for sign, value in bounds.items()}
    first = table.first(where, "created_at", limit, descending=descending)
    every = table.ordered(table.find(where), "created_at", descending=descending)[:limit]
    assert first is not None
    assert [row["created_at"] for _, row in first] == [row["created_at"] for _, row in every]


def test_a_condition_outside_the_index_is_checked_row_by_row() -> None:
    """Conditions on other columns narrow what the ordered index gives."""
    table = MemoryTable(CALLS)
    for n in range(6):
        table.put(f"c{n}", table.whole({**call(f"c{n}", n), "tenant": "a" if n % 2 else "b"}))
    where: Condition = {"run_id": "r", "tool": "t", "digest": "d", "tenant": "a"}
    first = table.first(where, "n", 2, descending=True)
    assert first is not None
    assert [row["n"] for _, row in first] == [5, 3]


@pytest.mark.anyio
async def test_the_newest_of_many_alike_costs_as_the_newest_of_few() -> None:
    """The last of 20,000 alike calls is found without looking at the others."""
    store = MemoryStore()

    def add(tx: Transaction) -> None:
        for n in range(20_000):
            tx.insert("calls", call(f"c{n}", n))

    def newest(tx: Transaction) -> float:
        where = {"run_id": "r", "tool": "t", "digest": "d"}
        begun = time.process_time()
        for _ in range(100):
            rows = tx.select("calls", where, order_by="n", descending=True, limit=1)
        assert rows[0]["n"] == 19_999
        return time.process_time() - begun

    await store.write(add)
    await store.read(newest)
    assert await store.read(newest) < 0.1
