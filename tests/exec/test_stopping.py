"""Stopping one run, and what watchers hear of doubts and late ends."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ToolDefinitionError,
    ToolInDoubt,
    ToolTimeout,
)
from agent_adapter.core.events import CallInDoubt, LateOutcome
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.types import RunLimits
from agent_adapter.exec import upkeep
from agent_adapter.exec.executor import Executor

pytestmark = pytest.mark.anyio


def till() -> ToolRegistry:
    """A write, and a read that starts a run of its own."""
    registry = ToolRegistry()

    @registry.tool
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    return registry


async def test_no_write_of_a_cancelled_run_begins(store: Any) -> None:
    """The run that was cancelled stops, others go on, and the ledger says who stopped it."""
    executor = Executor(till(), store=store)
    await executor.run("pay", {"amount": 1}, ctx=ToolContext(run_id="r"))
    await upkeep.cancel_run(store, "r", by="kim", reason="wrong customer")
    with pytest.raises(ApprovalDenied, match=r"the run was cancelled \(wrong customer\)"):
        await executor.run("pay", {"amount": 2}, ctx=ToolContext(run_id="r"))
    assert await executor.run("pay", {"amount": 2}, ctx=ToolContext(run_id="other")) == 2
    entries = await store.read(lambda tx: tx.select("ledger", {"kind": "run-cancelled"}))
    assert len(entries) == 1


async def test_a_run_started_by_a_cancelled_ones_tool_stops_too(store: Any) -> None:
    """Cancelling the root run reaches the runs that its tools start."""
    registry = till()
    executor = Executor(registry, store=store)

    @registry.tool
    async def outer() -> int:
        """Pay from inside, after the run was cancelled."""
        await upkeep.cancel_run(store, "r", by="kim")
        paid: int = await executor.run("pay", {"amount": 1})
        return paid

    with pytest.raises(ApprovalDenied, match="the run was cancelled"):
        await executor.run("outer", {}, ctx=ToolContext(run_id="r"))


async def test_an_unknown_run_cannot_be_cancelled(store: Any) -> None:
    """The error names the run, and nothing changes."""
    with pytest.raises(AgentAdapterError, match="no run run_x"):
        await upkeep.cancel_run(store, "run_x", by="kim")


async def test_watchers_hear_of_a_doubt_and_of_a_late_end(memory: Any) -> None:
    """`LateOutcome` when a given-up function ends, `CallInDoubt` when its repeat is refused."""
    registry = ToolRegistry()
    let_go, ended = threading.Event(), threading.Event()

    @registry.tool(timeout=0.5)
    def slow(amount: int) -> int:
        """Wait until told."""
        let_go.wait(60)
        return amount

    executor = Executor(registry, store=memory)
    heard: list[Any] = []

    def watch(event: Any) -> None:
        heard.append(event)
        if isinstance(event, LateOutcome):
            ended.set()

    executor.subscribe(watch)
    with pytest.raises(ToolTimeout):
        await executor.run("slow", {"amount": 1}, ctx=ToolContext(run_id="r"))
    with pytest.raises(ToolInDoubt, match="agent-adapter ledger resolve call_"):
        await executor.run("slow", {"amount": 1}, ctx=ToolContext(run_id="r"))
    let_go.set()
    assert ended.wait(60)
    assert [type(e) for e in heard if isinstance(e, CallInDoubt)] == [CallInDoubt]


async def test_a_divergence_without_a_port_says_what_can_be_done(memory: Any) -> None:
    """The earlier write is known, so the way out is a port or a new run, not `resolve`."""
    executor = Executor(till(), store=memory)
    await executor.run("pay", {"amount": 1}, ctx=ToolContext(run_id="r"))
    with pytest.raises(ToolInDoubt, match="give the executor an approval port, or begin a new run"):
        await executor.run("pay", {"amount": 2}, ctx=ToolContext(run_id="r", attempt=2))


def test_no_parallel_call_at_all_is_refused_as_a_limit() -> None:
    """`max_parallel=0` would refuse every call, so it is refused itself."""
    with pytest.raises(ToolDefinitionError, match="max_parallel=0"):
        RunLimits(max_parallel=0)
