"""Third-party integrations (seed 004): what their own `bind_context` says of a call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.context import ToolContext
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.base import IntegrationBase

from ._demo import demo, demo_on_path

pytestmark = pytest.mark.anyio


class Garden:
    """A registry with one write, and what it did."""

    def __init__(self, **policy: Any) -> None:
        self.done: list[str] = []
        self.registry = aa.ToolRegistry()
        self.executor = aa.Executor(self.registry, store=aa.open_store("memory://"))

        @self.registry.tool(**policy)
        async def water(bed: str) -> str:
            """Water a bed."""
            self.done.append(bed)
            return f"watered {bed} ({len(self.done)})"


class Own(IntegrationBase):
    """An integration whose `bind_context` writes its context itself and runs the call itself."""

    name = "own"

    def export_tool(self, spec: Any, *, executor: Any = None) -> Any:
        """An async function of the native call."""
        runner = runner_for(executor)

        async def call(native: dict[str, Any]) -> Any:
            ctx = self.bind_context(native)
            return await runner.run_spec(spec, native["arguments"], ctx, call_id=ctx.call_id)

        return call

    def bind_context(self, native: Any) -> ToolContext:
        """The native id, with the gate's decision and the call's place where there is one."""
        ctx = ToolContext(native["id"], run_id=native.get("run"), approval=native.get("approval"))
        ctx.position = native.get("position")
        return ctx


@pytest.fixture
def demo_integration(tmp_path: Path) -> Iterator[Any]:
    """The demo plug-in's module."""
    with demo_on_path(tmp_path):
        yield demo()


async def test_i9_equal_ids_of_a_plug_in_are_three_calls(demo_integration: Any) -> None:
    """I9: one run and `call_0` three times: an id that `bind_context` sets is no key."""
    garden = Garden()
    tool = demo_integration.INTEGRATION.export_tool(
        garden.registry.get("water"), executor=garden.executor
    )
    async with garden.executor.run_scope("r1"):
        for _ in range(3):
            await tool(demo_integration.DemoCall("call_0", {"bed": "north"}))
    assert garden.done == ["north"] * 3


async def test_i22_a_decision_in_a_context_of_its_own_counts() -> None:
    """I22: `ToolContext(call_id, approval=decision)` from an own `bind_context` is honoured."""
    garden = Garden(confirm=True)
    tool = Own().export_tool(garden.registry.get("water"), executor=garden.executor)
    decision = ApprovalDecision.approve(reviewer="ann")
    native = {"id": "c1", "arguments": {"bed": "north"}, "approval": decision}
    assert await tool(native) == "watered north (1)"


async def test_i22_a_denial_in_a_context_of_its_own_counts() -> None:
    """I22: the gate's no is a no."""
    garden = Garden(confirm=True)
    tool = Own().export_tool(garden.registry.get("water"), executor=garden.executor)
    decision = ApprovalDecision.deny(reviewer="ann", reason="not today")
    with pytest.raises(aa.ApprovalDenied, match="not today"):
        await tool({"id": "c1", "arguments": {"bed": "north"}, "approval": decision})
    assert garden.done == []


async def test_i22_a_decision_that_no_integration_bound_does_not_count() -> None:
    """A context that a caller makes approves nothing."""
    garden = Garden(confirm=True)
    ctx = ToolContext("c1", approval=ApprovalDecision.approve(reviewer="eve"))
    with pytest.raises(aa.ApprovalDenied):
        await garden.executor.run_spec(garden.registry.get("water"), {"bed": "north"}, ctx)
    assert garden.done == []


async def test_a_position_tells_calls_apart() -> None:
    """With `ctx.position` the same place is the same call, and another place another."""
    garden = Garden()
    tool = Own().export_tool(garden.registry.get("water"), executor=garden.executor)
    native = {"id": "call_0", "run": "r1", "arguments": {"bed": "north"}}
    for position in (("m1", 0), ("m1", 0), ("m2", 0)):
        await tool({**native, "position": position})
    assert garden.done == ["north", "north"]
