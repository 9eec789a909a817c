"""Guards that never return, rules that would repeat, and reads that start runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ApprovalDenied, GuardrailBlocked, ToolFailed
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.exec import hooks
from agent_adapter.exec.approval.ports.policy import PolicyApproval, PolicyRule
from agent_adapter.exec.executor import Executor
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio


async def test_a35_a_sync_guard_that_hangs_blocks_its_call_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A35: The event loop goes on while a guard hangs in its thread, and its call is refused."""
    monkeypatch.setattr(hooks, "HOOK_SECONDS", 0.05)
    let_go = threading.Event()

    class Hanging:
        def before(self, call: Any) -> None:
            let_go.wait(60)

    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool
    async def pay(amount: int) -> None:
        """Pay."""
        ran.append(amount)

    executor = Executor(registry, store=MemoryStore(), hooks=[Hanging()])
    with pytest.raises(GuardrailBlocked, match="did not answer in time"):
        await executor.run("pay", {"amount": 1})
    let_go.set()
    assert ran == []


@pytest.mark.parametrize("repeats", [None, True])
async def test_a_rule_repeats_an_unclear_write_only_when_it_says_so(repeats: bool | None) -> None:
    """`then="approve"` does not cover a write whose first try may have happened."""
    registry = ToolRegistry()
    ran: list[int] = []

    @registry.tool
    async def pay(amount: int) -> int:
        """Pay."""
        ran.append(amount)
        if len(ran) == 1:
            raise OSError("the line went dead")
        return amount

    port = PolicyApproval([PolicyRule(then="approve", repeats=repeats)])
    executor = Executor(registry, approval=port, store=MemoryStore())
    with pytest.raises(ToolFailed, match="OSError"):
        await executor.run("pay", {"amount": 1}, ctx=ToolContext(run_id="r"))
    if repeats:
        assert await executor.run("pay", {"amount": 1}, ctx=ToolContext(run_id="r")) == 1
    else:
        with pytest.raises(ApprovalDenied, match="no policy rule approves it"):
            await executor.run("pay", {"amount": 1}, ctx=ToolContext(run_id="r"))
    assert len(ran) == (2 if repeats else 1)


async def test_a_read_that_starts_a_run_keeps_the_row_of_an_earlier_one() -> None:
    """Two equal reads whose tools start runs have rows, and runs, of their own."""
    registry = ToolRegistry()
    runs: list[str | None] = []

    @registry.tool(effects="read")
    async def inner(ctx: ToolContext) -> int:
        """Note the run."""
        runs.append(ctx.run_id)
        return 1

    @registry.tool(effects="read")
    async def outer(deep: bool) -> int:
        """Call the inner tool, or not."""
        return await executor.run("inner", {}) if deep else 0

    executor = Executor(registry, store=MemoryStore())
    for _ in range(2):
        await executor.run("outer", {"deep": True}, ctx=ToolContext(run_id="r"))
    kept = await executor.store.read(lambda tx: tx.count("calls", {"run_id": "r"}))
    assert kept == 2
    assert len(set(runs)) == 2
