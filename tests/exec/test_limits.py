"""What one run may use."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    RunLimitExceeded,
    ToolBusy,
    ToolDefinitionError,
    ToolError,
)
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RunLimits
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.threads import SIZE, pool
from tests.exec.shop import ARGS, Till, another_process, in_run, until
from tests.exec.test_exactly_once import left_open

pytestmark = pytest.mark.anyio


async def test_max_calls(store: Any) -> None:
    """The call after the last is refused; another run has its own."""
    executor, till = Executor(store=store, limits=RunLimits(max_calls=2)), Till()
    for _ in range(2):
        await executor.run_spec(till.spec, ARGS, in_run())
    with pytest.raises(RunLimitExceeded, match="max_calls=2") as caught:
        await executor.run_spec(till.spec, ARGS, in_run())
    assert caught.value.limit == "max_calls" and len(till.ran) == 2
    await executor.run_spec(till.spec, ARGS, in_run("run_2"))


async def test_max_calls_per_tool(store: Any) -> None:
    """Counted by name."""
    executor = Executor(store=store, limits=RunLimits(max_calls_per_tool=1))
    till = Till()
    await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(till.spec.replace(name="other"), ARGS, in_run())
    with pytest.raises(RunLimitExceeded, match="max_calls_per_tool"):
        await executor.run_spec(till.spec, ARGS, in_run())


async def test_a_call_that_never_entered_its_function_is_given_back(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused after its intent, it used nothing of the run."""

    def charge(order: str, amount: int) -> str:
        """Charges an order in a thread."""
        return order

    spec = ToolSpec.from_function(charge, cost=6)
    executor = Executor(store=store, limits=RunLimits(max_calls_per_tool=1, max_cost=10))
    with monkeypatch.context() as patched:
        patched.setattr(pool, "lost", SIZE)
        with pytest.raises(ToolBusy):
            await executor.run_spec(spec, ARGS, in_run())
    assert await executor.run_spec(spec, ARGS, in_run()) == "A1"


async def test_max_cost(store: Any) -> None:
    """What fits exactly, fits."""
    executor = Executor(store=store, limits=RunLimits(max_cost=10))
    till = Till(cost=lambda args: args["amount"])
    await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(till.spec, ARGS, in_run())
    with pytest.raises(RunLimitExceeded, match="max_cost=10"):
        await executor.run_spec(till.spec, {"order": "A1", "amount": 1}, in_run())


async def test_max_seconds(store: Any, clock: Any) -> None:
    """From the run's first call."""
    executor, till = Executor(store=store, limits=RunLimits(max_seconds=60)), Till()
    await executor.run_spec(till.spec, ARGS, in_run())
    clock.pass_(60)
    await executor.run_spec(till.spec, ARGS, in_run())
    clock.pass_(1)
    with pytest.raises(RunLimitExceeded, match="max_seconds"):
        await executor.run_spec(till.spec, ARGS, in_run())


async def test_max_parallel(store: Any) -> None:
    """Places are free again when calls end."""
    gate = asyncio.Event()
    executor, till = Executor(store=store, limits=RunLimits(max_parallel=2)), Till(gate.wait)
    tasks = [asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run())) for _ in range(2)]
    await until(lambda: len(till.ran) == 2)
    with pytest.raises(RunLimitExceeded, match="max_parallel=2"):
        await executor.run_spec(till.spec, ARGS, in_run())
    gate.set()
    await asyncio.gather(*tasks)
    await executor.run_spec(till.spec, ARGS, in_run())


async def test_max_depth(store: Any) -> None:
    """Runs started by tools may nest so deep and no deeper."""
    executor = Executor(store=store, limits=RunLimits(max_depth=2))
    third = Till()
    second = Till(lambda: executor.run_spec(third.spec, ARGS, ToolContext()))
    first = Till(lambda: executor.run_spec(second.spec, ARGS, ToolContext()))
    with pytest.raises(RunLimitExceeded, match="max_depth=2"):
        await executor.run_spec(first.spec, ARGS, in_run())
    assert second.ran and not third.ran


async def test_sub_runs_use_the_limits_of_their_root(store: Any) -> None:
    """A tool cannot start a run to have more."""
    executor = Executor(store=store, limits=RunLimits(max_calls=2))
    inner = Till()
    outer = Till(lambda: executor.run_spec(inner.spec, ARGS, ToolContext(run_id="fresh")))
    await executor.run_spec(outer.spec, ARGS, in_run())
    with pytest.raises(RunLimitExceeded):
        await executor.run_spec(inner.spec, ARGS, in_run())


async def test_a33_parallel_calls_cannot_pass_the_limit_together(store: Any) -> None:
    """A33: Reserved in one step: of ten at once exactly three run."""
    executor = Executor(store=store, limits=RunLimits(max_calls=3))
    till = Till(lambda: asyncio.sleep(0.001, "charged"))
    calls = (executor.run_spec(till.spec, ARGS, in_run()) for _ in range(10))
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert found.count("charged") == len(till.ran) == 3


async def test_a33_processes_share_a_limit(sqlite: Any, clock: Any) -> None:
    """A33: What one has used the other cannot."""
    limits, till = RunLimits(max_calls=1), Till()
    async with another_process(sqlite, clock) as other:
        await Executor(store=other, limits=limits).run_spec(till.spec, ARGS, in_run())
        with pytest.raises(RunLimitExceeded):
            await Executor(store=sqlite, limits=limits).run_spec(till.spec, ARGS, in_run())


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1, True, "1", None])
async def test_a32_a_cost_that_is_none_is_refused(memory: Any, cost: Any) -> None:
    """A32: When the call asks for it, before anything runs; a fixed one when it is defined."""
    till = Till(cost=lambda args: cost)
    with pytest.raises(ToolDefinitionError, match="cost"):
        await Executor(store=memory).run_spec(till.spec, ARGS)
    assert till.ran == []
    if cost is not None:
        with pytest.raises(ToolDefinitionError, match="cost"):
            Till(cost=cost)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, True, "1"])
def test_a32_a_limit_that_is_none_is_refused(value: Any) -> None:
    """A32: NaN compares false with everything and would hold nothing."""
    with pytest.raises(ToolDefinitionError, match="max_cost"):
        RunLimits(max_cost=value)


async def test_a_replay_is_free(store: Any) -> None:
    """Only what runs is counted."""
    executor, till = Executor(store=store, limits=RunLimits(max_calls=2)), Till()
    for attempt in (1, 2, 3, 4):
        await executor.run_spec(till.spec, ARGS, in_run(attempt=attempt))
    await executor.run_spec(till.spec, ARGS, in_run(attempt=4))
    assert len(till.ran) == 2


async def test_a_failed_call_counts(store: Any) -> None:
    """It ran."""
    executor = Executor(store=store, limits=RunLimits(max_calls=1))
    with pytest.raises(ToolError):
        await executor.run_spec(Till(ToolError("no")).spec, ARGS, in_run())
    with pytest.raises(RunLimitExceeded):
        await executor.run_spec(Till().spec, ARGS, in_run())


async def test_a_call_run_again_counts_once(sqlite: Any, clock: Any) -> None:
    """A read that its process left behind is not paid for twice."""
    till, limits = Till(effects="idempotent"), RunLimits(max_calls=1)
    executor = Executor(store=sqlite, limits=limits)
    async with another_process(sqlite, clock) as other:
        await left_open(other, till.spec, limits=limits)
    assert await executor.run_spec(till.spec, ARGS, in_run(attempt=2)) == "charged"
    usage = await sqlite.read(lambda tx: tx.get("usage", "run_1", ""))
    assert usage["calls"] == 1


async def test_a_dead_process_holds_no_place(sqlite: Any, clock: Any) -> None:
    """Its reservations expire with it."""
    limits = RunLimits(max_parallel=1)
    async with another_process(sqlite, clock) as other:
        await left_open(other, Till(effects="read").spec, limits=limits)
    executor = Executor(store=sqlite, limits=limits)
    assert await executor.run_spec(Till().spec, {"order": "B", "amount": 1}, in_run())


async def test_costs_are_added_as_money(store: Any) -> None:
    """Three times 0.1 is 0.3, not a little more; a cost may be a `Decimal`."""
    executor, till = Executor(store=store, limits=RunLimits(max_cost=0.3)), Till(cost=0.1)
    exact = Till(cost=lambda args: Decimal("0.1"))
    for tool in (till, till, exact):
        await executor.run_spec(tool.spec, ARGS, in_run())
    assert (await store.read(lambda tx: tx.get("usage", "run_1", "")))["cost"] == 0.3
    with pytest.raises(RunLimitExceeded):
        await executor.run_spec(till.spec, ARGS, in_run())
