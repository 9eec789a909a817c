"""What a store can never take, and what it cannot take at present."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import (
    GuardrailBlocked,
    StoreError,
    ToolError,
    ToolInDoubt,
)
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec import large, ledger
from agent_adapter.exec.executor import Executor
from agent_adapter.store.intents import Outcome
from agent_adapter.store.recording import EndCall, without_values
from agent_adapter.store.sql import writer
from agent_adapter.store.sqlite import SqliteStore
from tests.exec.shop import ARGS, Till, endings, in_run, rows, until

pytestmark = pytest.mark.anyio

BROKEN = "no such file: caf\udce9\x00.txt"


class Disk:
    """Room on a disk that can be taken away: every commit fails with `SQLITE_FULL` meanwhile.

    It stands for the writer's file, and is never found to be the one that was opened: so it is
    checked.
    """

    opened = None

    def __init__(self, path: Path) -> None:
        self.full = False
        self.path = path

    def check(self) -> None:
        """Raise where there is no room."""
        if self.full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error


@pytest.fixture
def disk(sqlite: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk of `sqlite`, whose writer tries for 0.05 s instead of 5 s."""
    monkeypatch.setattr(writer, "_TRY_SECONDS", 0.05)
    monkeypatch.setattr(writer, "_OWED_SECONDS", 0.02)
    made = Disk(sqlite._writer._file.path)
    monkeypatch.setattr(sqlite._writer, "_file", made)
    yield made
    made.full = False


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store for a test that runs event loops of its own."""
    made = SqliteStore(tmp_path / "plain.db")
    yield made
    asyncio.run(made.aclose())


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
async def test_i16_r9_an_error_text_that_utf8_cannot_carry_is_recorded(
    store: Any, effects: str
) -> None:
    """I16, R9: It comes back as the tool said it, and later writes run."""
    executor = Executor(store=store)
    with pytest.raises(ToolError):
        await executor.run_spec(Till(ToolError(BROKEN), effects=effects).spec, ARGS, in_run())
    (row,) = await rows(store)
    assert row["error_text"] == BROKEN and (await ledger.verify(store)).ok
    assert await executor.run_spec(Till().spec, ARGS, in_run()) == "charged"


async def test_i16_identifiers_that_utf8_cannot_carry_are_recorded(store: Any) -> None:
    """I16: Runs, threads, ids, principals and tenants."""
    known = {"call_id": "c\ud800", "principal": "p\udfff", "thread_id": "t\x00"}
    till = Till()
    await Executor(store=store).run_spec(till.spec, ARGS, in_run("run\ud800", **known))
    (row,) = await rows(store, run_id="run\ud800")
    assert {name: row[name] for name in known} == known and (await ledger.verify(store)).ok


@pytest.mark.parametrize("effects", ["read", "write"])
async def test_r9_a_result_above_the_limit_is_withheld(store: Any, effects: str) -> None:
    """R9: The call is done, its result is not kept and not handed out, and later writes run."""
    executor = Executor(store=store, max_result_bytes=1000)
    till = Till("x" * 2000, effects=effects)
    with pytest.raises(GuardrailBlocked, match=r"withheld: it has 2,002 bytes, and at most 1,000"):
        await executor.run_spec(till.spec, ARGS, in_run())
    (row,) = await rows(store)
    kept = await store.read(lambda tx: tx.count("payloads"))
    assert (row["error_kind"], row["result"], kept) == ("guardrail-blocked", None, 1)
    assert row["ending"] == "ok"
    assert await executor.run_spec(Till().spec, ARGS, in_run()) == "charged"


@pytest.mark.parametrize("effects", ["read", "write"])
async def test_r9_a_large_result_is_kept_in_a_file_where_asked(sqlite: Any, effects: str) -> None:
    """R9: Beside the store, for its owner alone; it goes when its run is erased."""
    executor = Executor(store=sqlite, max_result_bytes=1000, keep_large_results=True)
    with pytest.raises(GuardrailBlocked, match=r"it is in \S+\.results/call_\w+\.result \(SHA-256"):
        await executor.run_spec(Till("x" * 2000, effects=effects).spec, ARGS, in_run())
    (row,) = await rows(sqlite)
    (file,) = large.folder(sqlite).glob("*")  # type: ignore[union-attr]  # it is a file
    assert file.name == f"{row['call_key']}.result" and len(file.read_bytes()) == 2002
    assert os.name != "posix" or stat.S_IMODE(file.stat().st_mode) == 0o600
    await ledger.erase(sqlite, "run_1")
    assert not file.exists() and (await ledger.verify(sqlite)).ok


async def test_r9_a_large_result_needs_a_store_in_a_file(memory: Any) -> None:
    """R9: The error says which store would do."""
    with pytest.raises(TypeError, match="keep_large_results needs a store in a file"):
        Executor(store=memory, keep_large_results=True)


async def test_r9_a_value_that_can_never_be_stored_leaves_a_marked_row(sqlite: Any) -> None:
    """R9: The outcome is recorded without it, and what was written with it stays."""
    gate = threading.Event()
    begun = asyncio.Event()

    async def wait() -> str:
        begun.set()
        await asyncio.to_thread(gate.wait)
        return "done"

    task = asyncio.create_task(Executor(store=sqlite).run_spec(Till(wait).spec, ARGS, in_run()))
    await begun.wait()
    (row,) = await rows(sqlite)
    lost = Outcome(
        call_key=row["call_key"], run_id="run_1", ending="ok", error_text=2**70, reserved=False
    )  # type: ignore[arg-type]  # what a column cannot hold
    await sqlite.write(EndCall(lost))
    (row,) = await rows(sqlite)
    assert (row["state"], row["ending"], row["error_text"]) == ("done", "ok", None)
    entry = (await ledger.entries(sqlite, "run_1"))[-1]
    assert entry.facts["unstored"] is True and (await ledger.verify(sqlite)).ok
    gate.set()
    await task


def test_an_outcome_without_its_values_keeps_how_it_ended() -> None:
    """A kind that is no plain text is replaced, and so is the text."""
    outcome = Outcome(
        call_key="c", run_id="r", ending="unknown", error_kind="\ud800", error_text="x", result=b"y"
    )
    bare = without_values(outcome)
    assert (bare.ending, bare.error_kind, bare.result) == ("unknown", "tool-error", None)
    assert bare.error_text == "the text of this outcome could not be stored"


async def test_r10_a_write_cancelled_while_the_disk_is_full_is_listed_as_in_doubt(
    sqlite: Any, disk: Disk
) -> None:
    """In the live process, at once; until there is room new writes are refused."""
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    executor = Executor(store=sqlite)
    task = asyncio.create_task(executor.run_spec(Till(hang).spec, ARGS, in_run()))
    await begun.wait()
    disk.full = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    till = Till()
    with pytest.raises(StoreError, match="cannot write"):
        await executor.run_spec(till.spec, ARGS, in_run("run_2"))
    assert till.ran == []
    for disk.full in (True, False):
        assert [row["run_id"] for row in await ledger.in_doubt(sqlite)] == ["run_1"]
    assert await executor.run_spec(till.spec, ARGS, in_run("run_2")) == "charged"


async def test_r10_an_outcome_that_a_full_disk_refuses_is_recorded_later(
    sqlite: Any, disk: Disk
) -> None:
    """The caller hears that the write is in doubt; the record is made when there is room."""
    disk_full = asyncio.Event()

    async def fill() -> str:
        disk.full = True
        disk_full.set()
        return "done"

    executor = Executor(store=sqlite)
    with pytest.raises(ToolInDoubt):
        await executor.run_spec(Till(fill).spec, ARGS, in_run())
    disk.full = False
    assert await endings(sqlite) == ["ok"] and (await ledger.verify(sqlite)).ok


def test_r10_a_call_whose_event_loop_is_closed_is_listed_as_in_doubt(plain: SqliteStore) -> None:
    """In the live process, whether or not anybody still holds the call."""
    till = Till(asyncio.Event().wait)
    executor = Executor(store=plain)
    loop = asyncio.new_event_loop()
    task = loop.create_task(executor.run_spec(till.spec, ARGS, in_run()))
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # the loop is closed on purpose

    async def begun() -> None:
        await until(lambda: bool(till.ran))

    loop.run_until_complete(begun())
    loop.close()
    found = asyncio.run(ledger.in_doubt(plain))
    assert [row["error_text"] for row in found] == ["the event loop was closed under it"]
    del task
    gc.collect()


def test_r10_a_call_whose_event_loop_is_closed_before_it_learned_of_its_intent_is_aborted(
    plain: SqliteStore,
) -> None:
    """It was never entered, and it is not under way for ever."""
    till = Till()
    executor = Executor(store=plain)
    loop = asyncio.new_event_loop()
    task = loop.create_task(executor.run_spec(till.spec, ARGS, in_run()))
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # the loop is closed on purpose
    while not executor.runtime.in_flight.beginning:
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    async def found() -> tuple[Any, Any]:
        return await ledger.in_doubt(plain), await endings(plain)

    assert asyncio.run(found()) == ([], ["aborted"])
    assert till.ran == []
    del task
    gc.collect()
    assert asyncio.run(endings(plain)) == ["aborted"]


async def test_a_call_under_way_is_not_in_doubt(store: Any) -> None:
    """Neither while its tool runs nor while its intent or its end is written."""
    gate = asyncio.Event()
    till, executor = Till(gate.wait), Executor(store=store)
    task = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run()))
    await until(lambda: bool(till.ran))
    assert await ledger.in_doubt(store) == []
    gate.set()
    await task
    assert await ledger.in_doubt(store) == []


def test_r10_a_value_that_comes_after_its_loop_was_closed_is_recorded(plain: SqliteStore) -> None:
    """A sync tool goes on in its thread: how it ended is the outcome of the call."""
    gate, entered = threading.Event(), threading.Event()

    def charge(order: str, amount: int) -> str:
        """Charges an order."""
        entered.set()
        gate.wait(10)
        return "charged"

    loop = asyncio.new_event_loop()
    executor = Executor(store=plain)
    task = loop.create_task(executor.run_spec(ToolSpec.from_function(charge), ARGS, in_run()))
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # the loop is closed on purpose

    async def begun() -> None:
        await asyncio.to_thread(entered.wait, 10)

    loop.run_until_complete(begun())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    gate.set()

    async def ended() -> list[str | None]:
        async with asyncio.timeout(5):
            while (found := await endings(plain)) == [None]:
                await asyncio.sleep(0.01)
        return found

    assert asyncio.run(ended()) == ["ok"]
    del task
    gc.collect()


async def test_r10_a_write_whose_label_cannot_be_written_is_in_doubt(
    sqlite: Any, disk: Disk
) -> None:
    """After its effect it is not to be repeated, and it is listed when there is room."""

    async def fill() -> str:
        disk.full = True
        return "read from outside"

    executor, till = Executor(store=sqlite), Till(fill, trust="untrusted")
    with pytest.raises(ToolInDoubt, match="do not repeat it"):
        await executor.run_spec(till.spec, ARGS, in_run())
    disk.full = False
    assert [row["ending"] for row in await ledger.in_doubt(sqlite)] == ["unknown"]
    assert len(till.ran) == 1


def test_r10_a_call_that_is_collected_after_its_loop_was_closed_is_in_doubt(
    plain: SqliteStore,
) -> None:
    """Its outcome is told when Python closes its coroutine."""
    till = Till(asyncio.Event().wait)
    loop = asyncio.new_event_loop()
    calling = Executor(store=plain).run_spec(till.spec, ARGS, in_run())
    task = loop.create_task(calling)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # the loop is closed on purpose
    loop.run_until_complete(until(lambda: bool(till.ran)))
    loop.close()
    calling.close()
    found = asyncio.run(ledger.in_doubt(plain))
    assert [row["ending"] for row in found] == ["unknown"]
