"""AutoGen has no run: a scope around the agent names it, else rules per run fail closed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat")

import agent_adapter as aa
from agent_adapter.integrations.autogen import autogen_tools

from ._autogen_agent import error_of, run

pytestmark = pytest.mark.anyio

_IDS = itertools.count(1)


class Garden:
    """An untrusted read and a write, and what they did."""

    def __init__(self, *, deferred: bool = False, limits: Any = None, **policy: Any) -> None:
        self.done: list[str] = []
        self.store = aa.open_store("memory://")
        self.registry = aa.ToolRegistry()
        self.executor = aa.Executor(
            self.registry,
            store=self.store,
            limits=limits,
            approval=aa.DeferredApproval(self.store) if deferred else None,
        )

        @self.registry.tool(effects="read", trust="untrusted")
        async def look() -> str:
            """Read a page."""
            return "a page"

        @self.registry.tool(**policy)
        async def water(bed: str) -> str:
            """Water a bed."""
            self.done.append(bed)
            return f"watered {bed} ({len(self.done)})"

    async def run(self, *turns: Any) -> Any:
        """The results of an agent's run."""
        return await run(autogen_tools(self.registry, executor=self.executor), *turns)


def _water(call_id: str | None = None) -> tuple[str, str, dict[str, str]]:
    return (call_id or f"c{next(_IDS)}", "water", {"bed": "north"})


async def test_i1_equal_ids_are_new_calls_in_a_scope() -> None:
    """I1: three model responses repeat id and arguments: three calls."""
    garden = Garden()
    async with garden.executor.run_scope("r1"):
        await garden.run(*([_water("call_0")] for _ in range(3)))
    assert garden.done == ["north"] * 3


async def test_i12_without_a_scope_there_is_one_question_and_resume_runs_it() -> None:
    """I12: asked for again and again: one record; approved, `resume` runs it once."""
    garden = Garden(deferred=True, confirm=True)
    inbox = aa.Inbox(garden.store)
    await garden.run([_water()], [_water()], [_water()])
    (record,) = await inbox.list()
    await inbox.approve(record.id, reviewer="ann")
    await garden.run([_water()])
    assert garden.done == [] and len(await inbox.list(None)) == 1
    await garden.executor.resume(record.id)
    assert garden.done == ["north"]


async def test_i13_a_tainted_rule_without_a_scope_asks() -> None:
    """I13: nobody knows what the run has read, so the write asks."""
    garden = Garden(confirm="tainted")
    found = await garden.run([("c0", "look", {})], [_water("c1")])
    assert error_of(found["c1"])["kind"] == "approval-denied" and garden.done == []


async def test_i14_limits_without_a_scope_refuse() -> None:
    """I14: eight parallel calls and a limit of cost: none runs; in a scope one does."""
    garden = Garden(cost=10, limits=aa.RunLimits(max_cost=10))
    calls = [_water(f"c{n}") for n in range(8)]
    found = await garden.run(calls)
    assert {error_of(result)["kind"] for result in found.values()} == {"run-unknown"}
    async with garden.executor.run_scope("r1"):
        await garden.run(calls)
    assert garden.done == ["north"]
