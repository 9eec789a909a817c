"""A port that keeps its records in another store than the executor keeps its calls in."""

from __future__ import annotations

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ApprovalDenied, ApprovalPending
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.gate import Gate
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio


def till(ran: list[int]) -> ToolRegistry:
    """A registry whose one tool notes what it paid."""
    registry = ToolRegistry()

    @registry.tool(confirm=True)
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    return registry


async def test_a_gate_may_keep_its_records_elsewhere() -> None:
    """A call approved in the port's own store runs, and the record is used up there."""
    ran: list[int] = []
    records = MemoryStore()
    executor = Executor(till(ran))
    gate = Gate(executor, DeferredApproval(records))
    spec = executor.registry.get("pay") if executor.registry else None
    assert spec is not None
    with pytest.raises(ApprovalPending) as pending:
        await gate.ask(spec, {"amount": 5}, ToolContext("c1", "r"))
    await Inbox(records).approve(pending.value.id, reviewer="kim")
    grant = await gate.ask(spec, {"amount": 5}, ToolContext("c2", "r"))
    ctx = ToolContext("c2", "r", approval=grant.token)
    assert await executor.run_spec(spec, {"amount": 5}, ctx) == "paid"
    assert (await Inbox(records).get(pending.value.id)).state == "taken"


async def test_two_executors_use_one_record_elsewhere_once() -> None:
    """Of two executors with stores of their own that race for one record, one runs the tool."""
    ran: list[int] = []
    records = MemoryStore()
    port = DeferredApproval(records)
    registry = till(ran)
    one, two = (Executor(registry, approval=port, store=MemoryStore()) for _ in range(2))
    with pytest.raises(ApprovalPending) as pending:
        await one.run("pay", {"amount": 5}, ctx=ToolContext("c", "r"))
    await Inbox(records).approve(pending.value.id, reviewer="kim")
    assert await one.run("pay", {"amount": 5}, ctx=ToolContext("c", "r")) == "paid"
    with pytest.raises((ApprovalDenied, ApprovalPending)):
        await two.run("pay", {"amount": 5}, ctx=ToolContext("c", "r"))
    assert ran == [5]


async def test_a_record_elsewhere_is_resumed_once() -> None:
    """`resume` finds the record in the port's store and uses it up there."""
    ran: list[int] = []
    records = MemoryStore()
    executor = Executor(till(ran), approval=DeferredApproval(records), store=MemoryStore())
    with pytest.raises(ApprovalPending) as pending:
        await executor.run("pay", {"amount": 5})
    await Inbox(records).approve(pending.value.id, reviewer="kim")
    assert await executor.resume(pending.value.id) == "paid"
    assert await executor.resume(pending.value.id) == "paid"
    assert ran == [5]
