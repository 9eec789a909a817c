"""Books, counters and plans stay small in a process that lives long."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from agent_adapter.core.errors import ApprovalDenied, ApprovalPending, ToolError
from agent_adapter.core.types import CachePolicy
from agent_adapter.exec import in_flight as in_flight_module
from agent_adapter.exec import runtime as runtime_module
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.gate import Gate
from tests.exec.shop import ARGS, NO, YES, Till, in_run, no_key, until
from tests.fakes.approval import FakeApproval

pytestmark = pytest.mark.anyio


def left(executor: Executor) -> dict[str, int]:
    """How much the executor holds of calls that have ended."""
    book = executor.runtime.in_flight
    return {
        "running": len(book._running),
        "claimed": len(book._claimed),
        "lost": len(book.lost),
        "asking": len(executor.runtime.asking),
        "flights": len(executor.runtime.flights),
        "tokens": len(executor.tokens),
    }


NOTHING = {"running": 0, "claimed": 0, "lost": 0, "asking": 0, "flights": 0, "tokens": 0}


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
@pytest.mark.parametrize("then", ["charged", ToolError("no"), ValueError()])
@pytest.mark.parametrize("port", [None, FakeApproval(YES), FakeApproval(NO), "deferred"])
async def test_a_call_leaves_nothing_behind(
    memory: Any, effects: Any, then: Any, port: Any
) -> None:
    """However it ended, and whoever was asked."""
    port = DeferredApproval(memory) if port == "deferred" else port
    executor = Executor(store=memory, approval=port)
    till = Till(then, effects=effects, confirm=port is not None)
    for number in range(3):
        known: Any = {"call_id": f"c{number}", "reexecutes": True}
        with contextlib.suppress(ApprovalDenied, ApprovalPending, ToolError):
            await executor.run_spec(till.spec, ARGS, in_run(f"r{number}", **known))
    assert left(executor) == NOTHING


async def test_a_gated_call_leaves_nothing_behind(memory: Any) -> None:
    """Approved and run, denied, or blocked."""
    executor, till = Executor(store=memory), Till(confirm=True)
    grant = await Gate(executor, FakeApproval(YES)).ask(till.spec, ARGS, in_run(call_id="c"))
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    with pytest.raises(ApprovalDenied):
        await Gate(executor, FakeApproval(NO)).ask(till.spec, ARGS, in_run(call_id="d"))
    assert left(executor) == NOTHING


async def test_a_cancelled_call_leaves_nothing_behind(memory: Any) -> None:
    """Neither in a function, nor in a question, nor in a flight."""
    executor = Executor(store=memory)
    tills = [
        Till(lambda: asyncio.Event().wait()),
        Till(lambda: asyncio.Event().wait(), effects="read"),
    ]
    tasks = [asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run())) for till in tills]
    await until(lambda: all(till.ran for till in tills))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert left(executor) == NOTHING


async def test_a_flight_leaves_nothing_behind(memory: Any) -> None:
    """Landed or crashed."""
    executor = Executor(store=memory)
    for then in ("found", ValueError()):
        till = Till(then, effects="read", cache=CachePolicy(scope="global"), cache_key=no_key)
        calls = (executor.run_spec(till.spec, ARGS) for _ in range(3))
        await asyncio.gather(*calls, return_exceptions=True)
    assert left(executor) == NOTHING


async def test_issued_numbers_are_bounded(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten."""
    monkeypatch.setattr(in_flight_module, "_REMEMBERED", 5)
    executor, till = Executor(store=memory), Till(effects="idempotent")
    for number in range(20):
        await executor.run_spec(till.spec, ARGS, in_run(f"r{number}"))
    assert len(executor.runtime.in_flight._issued) <= 5


async def test_labels_are_bounded(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten one is written again, which changes nothing."""
    monkeypatch.setattr(in_flight_module, "_REMEMBERED", 5)
    executor, till = Executor(store=memory), Till(effects="read", trust="untrusted")
    for number in range(20):
        await executor.run_spec(till.spec, ARGS, in_run(f"r{number}"))
    assert len(executor.runtime.in_flight._tainted) <= 5


async def test_plans_are_bounded(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that are made for one call do not pile up."""
    monkeypatch.setattr(runtime_module, "_MOST_PLANS", 5)
    executor, till = Executor(store=memory), Till()
    for number in range(20):
        await executor.run_spec(till.spec.replace(version=str(number)), ARGS)
    assert len(executor.runtime.plans) <= 5


async def test_the_memory_store_forgets_idle_runs_and_keeps_open_ones(
    memory: Any, clock: Any
) -> None:
    """A call that is under way, and one that waits for a person, stay."""
    gate = asyncio.Event()
    executor = Executor(store=memory, approval=DeferredApproval(memory))
    running = Till(gate.wait)
    task = asyncio.create_task(executor.run_spec(running.spec, ARGS, in_run("running")))
    await until(lambda: bool(running.ran))
    with pytest.raises(ApprovalPending):
        await executor.run_spec(Till(confirm=True).spec, ARGS, in_run("held"))
    await executor.run_spec(Till(effects="read").spec, ARGS, in_run("idle"))
    await executor.aclose()
    clock.pass_(3601)
    for number in range(300):
        await executor.run_spec(Till(effects="read").spec, ARGS, in_run(f"r{number}"))
    known = {row["run_id"] for row in await memory.read(lambda tx: tx.select("calls"))}
    held = await memory.read(lambda tx: tx.count("approvals"))
    assert "idle" not in known and "running" in known and held == 1
    gate.set()
    await task
