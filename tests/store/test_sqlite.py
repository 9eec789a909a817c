"""What the SQLite store does beyond the kit: the writer thread, its queue and its callers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Transaction
from agent_adapter.store.sql import writer
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.sqlite.connection import writing_connection

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A fresh store."""
    opened = SqliteStore(tmp_path / "state.db")
    yield opened
    await opened.aclose()


class _Gate:
    """An operation that holds the writer until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, tx: Transaction) -> None:
        self.entered.set()
        assert self.open.wait(60)


async def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    """Rows, key and URL survive; the owner id does not."""
    first = SqliteStore(tmp_path / "state.db")
    await first.write(lambda tx: tx.insert("runs", {"run_id": "r"}))
    await first.aclose()
    second = SqliteStore(first.url)
    assert await second.read(lambda tx: tx.count("runs")) == 1
    assert (second.key, second.url) == (first.key, first.url)
    assert second.owner_id != first.owner_id
    await second.aclose()


def test_commits_are_on_the_disk_when_they_return(tmp_path: Path) -> None:
    """The writer's connection has a write-ahead log and `synchronous=FULL` (2)."""
    connection = writing_connection(tmp_path / "state.db", create=True)
    asked = [connection.execute(f"PRAGMA {name}") for name in ("journal_mode", "synchronous")]
    assert [answer.fetchone()[0] for answer in asked] == ["wal", 2]
    connection.close()


async def test_closing_leaves_one_file_and_its_key(tmp_path: Path) -> None:
    """The write-ahead log is emptied into the file, and no owner is left locked."""
    store = SqliteStore(tmp_path / "state.db")
    await store.write(lambda tx: tx.insert("runs", {"run_id": "r"}))
    await store.read(lambda tx: tx.count("runs"))
    await store.aclose()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"state.db", "state.db.key", "state.db.epochs"}
    assert [path.name for path in (tmp_path / "state.db.epochs").iterdir()] == [".opening"]


async def test_a_poisoned_operation_spares_its_batch(store: SqliteStore) -> None:
    """Of operations committed together, only the one that raised fails, in its place."""
    gate = _Gate()
    holding = asyncio.create_task(store.write(gate))
    await asyncio.to_thread(gate.entered.wait)

    def poison(tx: Transaction) -> None:
        tx.insert("runs", {"run_id": "poisoned"})
        raise ValueError("poison")

    async def before() -> bool:
        return await store.write(lambda tx: tx.insert("runs", {"run_id": "before"}))

    async def after() -> bool:
        return await store.write(lambda tx: tx.get("runs", "before") is not None)

    group = asyncio.gather(before(), store.write(poison), after(), return_exceptions=True)
    await asyncio.sleep(0)
    gate.open.set()
    good, bad, seen = await group
    await holding
    assert (good, seen) == (True, True)
    assert isinstance(bad, ValueError)
    assert await store.read(lambda tx: [row["run_id"] for row in tx.select("runs")]) == ["before"]


async def test_an_operation_that_did_its_part_is_not_repeated_for_another(
    store: SqliteStore,
) -> None:
    """When a batch is redone one by one, what each of them wrote is there once."""
    gate = _Gate()
    holding = asyncio.create_task(store.write(gate))
    await asyncio.to_thread(gate.entered.wait)

    def add(tx: Transaction) -> int:
        row = tx.get("usage", "r", "") or {"calls": 0}
        if not tx.update("usage", {"run_id": "r"}, {"calls": row["calls"] + 1}):
            tx.insert("usage", {"run_id": "r", "tool": "", "calls": 1})
        if row["calls"] == 3:
            raise ValueError("the fourth")
        return int(row["calls"]) + 1

    group = asyncio.gather(*(store.write(add) for _ in range(6)), return_exceptions=True)
    await asyncio.sleep(0)
    gate.open.set()
    values = await group
    await holding
    assert values[:3] == [1, 2, 3]
    assert all(isinstance(value, ValueError) for value in values[3:])


async def test_a_closed_loop_is_skipped(store: SqliteStore) -> None:
    """An operation of a loop that is gone is done, and the writer goes on."""
    gate = _Gate()

    def leave() -> None:
        loop = asyncio.new_event_loop()
        first = store.write(gate)
        second = store.write(lambda tx: tx.insert("runs", {"run_id": "left"}))
        tasks = [loop.create_task(first), loop.create_task(second)]
        loop.run_until_complete(asyncio.sleep(0))
        for task in tasks:
            # The loop is closed under them on purpose.
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own switch
        loop.close()

    await asyncio.to_thread(leave)
    gate.open.set()
    await store.flush()
    assert await store.read(lambda tx: tx.count("runs")) == 1


async def test_callers_wait_where_the_queue_is_full(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a full queue more callers wait, and nothing is dropped."""
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 5)
    gate = _Gate()
    holding = asyncio.create_task(store.write(gate))
    await asyncio.to_thread(gate.entered.wait)
    tasks = [
        asyncio.create_task(store.write(lambda tx, i=i: tx.insert("runs", {"run_id": f"r{i}"})))
        for i in range(50)
    ]
    await asyncio.sleep(0)
    assert store._writer._queue.qsize() == 5
    gate.open.set()
    await asyncio.gather(holding, *tasks)
    assert await store.read(lambda tx: tx.count("runs")) == 50


async def test_a_reader_does_not_wait_for_the_writer(store: SqliteStore) -> None:
    """While a write is under way, a read answers with what was there before it."""
    gate = _Gate()
    holding = asyncio.create_task(store.write(gate))
    await asyncio.to_thread(gate.entered.wait)
    assert await store.read(lambda tx: tx.count("runs")) == 0
    gate.open.set()
    await holding


async def test_a_value_that_no_column_holds_fails_its_operation(store: SqliteStore) -> None:
    """A number beyond 64 bits or a list is a StoreError for its caller alone."""
    for value in (2**70, ["list"]):
        with pytest.raises(StoreError, match="cannot be stored"):
            await store.write(lambda tx, value=value: tx.insert("runs", {"run_id": value}))
    assert await store.write(lambda tx: tx.insert("runs", {"run_id": "r"})) is True


async def test_a_posted_operation_that_raises_is_logged(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for it, so the log has it."""
    store.post(lambda tx: 1 / 0)
    with caplog.at_level(logging.ERROR, "agent_adapter.store"):
        await store.flush()
    assert "a posted operation failed" in caplog.text


async def test_a_disk_that_fails_for_a_while_is_tried_again(store: SqliteStore) -> None:
    """A write that cannot be committed at first is committed once the disk has room."""
    await store.write(_limit_pages(1))
    rows = [{"run_id": f"r{i}", "data": b"x" * 4000, "id": f"p{i}"} for i in range(50)]
    task = asyncio.create_task(store.write(lambda tx: [tx.insert("payloads", row) for row in rows]))
    assert len(await task) == 50


async def test_a_disk_that_stays_full_fails_the_write(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time for trying, the error names the file and the reason; later writes try anew."""
    monkeypatch.setattr(writer, "_TRY_SECONDS", 0.2)
    await store.write(_limit_pages(1))
    connect = store._writer._connect

    def small() -> object:
        connection = connect()
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    store._writer._connect = small  # type: ignore[assignment]  # the writer opens it anew
    big = {"id": "p", "data": b"x" * 400_000}
    with pytest.raises(StoreError, match=r"cannot write .*state\.db: database or disk is full"):
        await store.write(lambda tx: tx.insert("payloads", big))
    store._writer._connect = connect
    store._writer._disconnect()
    assert await store.write(lambda tx: tx.insert("payloads", big)) is True


def _limit_pages(number: int):  # type: ignore[no-untyped-def]  # an operation for one test
    def op(tx: Transaction) -> None:
        tx._cursor.execute(f"PRAGMA max_page_count = {number}").fetchall()  # type: ignore[attr-defined]  # SQLite's own way to a full disk

    return op
