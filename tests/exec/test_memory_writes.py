"""The memory store forgets no write before its process ends."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.errors import ToolFailed, ToolInDoubt
from agent_adapter.exec import ledger
from agent_adapter.exec.executor import Executor
from agent_adapter.store import MemoryStore
from agent_adapter.store.memory import store as module
from tests.exec.shop import ARGS, FakeClock, Till, in_run

pytestmark = pytest.mark.anyio

HOUR = 3601.0


async def _pass(store: MemoryStore) -> None:
    for _ in range(600):
        await store.write(lambda tx: None)


def _once(then: Any = "charged", **policy: Any) -> Till:
    return Till(then, once_key=lambda args: "the order", **policy)


async def test_r7_a_write_with_a_once_key_runs_once_after_an_idle_hour(
    memory: MemoryStore, clock: FakeClock
) -> None:
    """R7: The second caller gets the recorded result."""
    executor, till = Executor(store=memory), _once()
    assert await executor.run_spec(till.spec, ARGS, in_run("a")) == "charged"
    clock.pass_(HOUR)
    await _pass(memory)
    assert await executor.run_spec(till.spec, ARGS, in_run("b")) == "charged"
    assert len(till.ran) == 1 and (await ledger.verify(memory)).problems == ()


async def test_r7_a_write_with_a_once_key_runs_once_after_many_runs(
    memory: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7: However many other runs came between."""
    monkeypatch.setattr(module, "_RUN_LIMIT", 20)
    store = MemoryStore()
    executor, till, read = Executor(store=store), _once(), Till(effects="read")
    await executor.run_spec(till.spec, ARGS, in_run("a"))
    for i in range(600):
        await executor.run_spec(read.spec, ARGS, in_run(f"run-{i}"))
    await _pass(store)
    assert await store.read(lambda tx: tx.count("runs")) < 40
    assert await executor.run_spec(till.spec, ARGS, in_run("b")) == "charged"
    assert len(till.ran) == 1 and (await ledger.verify(store)).problems == ()


async def test_r7_a_large_result_is_not_kept_and_its_write_still_runs_once(
    memory: MemoryStore, clock: FakeClock
) -> None:
    """R7: The caller hears that it was done."""
    executor, till = Executor(store=memory), _once("x" * 5000)
    await executor.run_spec(till.spec, ARGS, in_run("a"))
    clock.pass_(HOUR)
    await _pass(memory)
    with pytest.raises(ToolInDoubt, match="was done; its result is no longer kept"):
        await executor.run_spec(till.spec, ARGS, in_run("b"))
    report = await ledger.verify(memory)
    assert len(till.ran) == 1 and report.ok and report.erased == 2


async def test_r7_a_doubt_stays_for_a_person(memory: MemoryStore, clock: FakeClock) -> None:
    """R7: It is listed after the idle hour as before."""
    with pytest.raises(ToolFailed):
        await Executor(store=memory).run_spec(Till(ValueError()).spec, ARGS, in_run())
    clock.pass_(HOUR)
    await _pass(memory)
    assert len(await ledger.in_doubt(memory)) == 1
