"""The helpers of model providers: run and position of a response's calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

import agent_adapter as aa
from agent_adapter.integrations.generic import run_tool_loop

from ._providers import ChatScript
from .test_provider_calls import PROVIDERS, Provider, kind_of

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

WATER = ("call_0", "water", {"bed": "north"})


class Garden:
    """An untrusted read and a write, and what they did."""

    def __init__(self, *, deferred: bool = False, limits: Any = None, **policy: Any) -> None:
        self.done: list[str] = []
        self.seen: list[aa.ToolContext] = []
        self.store = aa.open_store("memory://")
        self.inbox = aa.Inbox(self.store)
        self.registry = aa.ToolRegistry()
        port = aa.DeferredApproval(self.store) if deferred else None
        self.executor = aa.Executor(self.registry, store=self.store, limits=limits, approval=port)

        @self.registry.tool(effects="read", trust="untrusted")
        async def look() -> str:
            """Read a page."""
            return "a page"

        @self.registry.tool(**policy)
        async def water(bed: str, ctx: aa.ToolContext) -> str:
            """Water a bed."""
            self.seen.append(ctx)
            self.done.append(bed)
            return f"watered {bed} ({len(self.done)})"


@pytest.fixture(params=list(PROVIDERS))
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each of the providers."""
    return Provider(request.param)


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
async def test_i2_equal_ids_in_three_responses_are_three_calls(
    provider: Provider, effects: Any
) -> None:
    """I2: three responses of one run repeat id and arguments: three calls."""
    garden = Garden(effects=effects)
    for number in (1, 2, 3):
        response = provider.response(WATER, number=number)
        await provider.answer(response, garden.registry, executor=garden.executor, run_id="r1")
    assert garden.done == ["north"] * 3


@pytest.mark.parametrize("run_id", ["r1", None])
async def test_the_same_response_again_is_the_same_calls(
    provider: Provider, run_id: str | None
) -> None:
    """Two equal calls of one response, answered twice: each runs once, with or without a run."""
    garden = Garden()
    read = []
    for _ in range(2):
        response = provider.response(WATER, ("call_1", *WATER[1:]))
        options: dict[str, Any] = {"executor": garden.executor, "run_id": run_id}
        read.append(await provider.answer(response, garden.registry, **options))
    assert read[0] == read[1] and len(read[0]) == 2
    assert garden.done == ["north", "north"]
    assert [ctx.identity.run for ctx in garden.seen] == [run_id, run_id]


async def test_i25_an_approval_is_used_by_the_call_in_a_new_response(provider: Provider) -> None:
    """I25: asked, approved, the user says "go on", the model calls anew: it runs once."""
    garden = Garden(deferred=True, confirm=True)
    options: dict[str, Any] = {"executor": garden.executor, "run_id": "r1"}
    with pytest.raises(aa.ApprovalPending) as held:
        await provider.answer(provider.response(WATER, number=1), garden.registry, **options)
    await garden.inbox.approve(held.value.id, reviewer="ann")
    again = provider.response(("call_9", *WATER[1:]), number=2)
    await provider.answer(again, garden.registry, **options)
    assert garden.done == ["north"]
    with pytest.raises(aa.ApprovalPending):
        await provider.answer(provider.response(WATER, number=3), garden.registry, **options)


async def test_i13_a_tainted_rule_without_a_run_asks(provider: Provider) -> None:
    """I13: a helper without a run knows nothing of what was read: the write asks."""
    garden = Garden(confirm="tainted")
    for number, call in enumerate((("c0", "look", {}), WATER), 1):
        response = provider.response(call, number=number)
        read = await provider.answer(response, garden.registry, executor=garden.executor)
    assert kind_of(read["call_0"]) == "approval-denied" and garden.done == []


async def test_i14_limits_without_a_run_refuse(provider: Provider) -> None:
    """I14: without a run a limit refuses; a run scope around gives one."""
    garden = Garden(limits=aa.RunLimits(max_calls=1))
    response = provider.response(WATER)
    read = await provider.answer(response, garden.registry, executor=garden.executor)
    assert kind_of(read["call_0"]) == "run-unknown" and garden.done == []
    async with garden.executor.run_scope("r1"):
        await provider.answer(response, garden.registry, executor=garden.executor)
    assert garden.done == ["north"]
    assert garden.seen[0].identity.run == "r1"


async def test_i2_a_loop_is_one_run_of_new_calls() -> None:
    """I2: three turns of a loop repeat id and arguments: three calls of the run it fixed."""
    garden = Garden()
    client = ChatScript([WATER], [WATER], [WATER]).client()
    ended = await run_tool_loop(
        client, garden.registry, model="m", messages="go", executor=garden.executor
    )
    assert ended.status == "done" and garden.done == ["north"] * 3
    assert {ctx.identity.run for ctx in garden.seen} == {ended.run_id}


async def test_i13_a_loop_keeps_labels_in_its_run() -> None:
    """I13: an untrusted read and a write before and after it, in one loop."""
    garden = Garden(confirm="tainted")
    client = ChatScript([WATER], [("c0", "look", {})], [("c1", *WATER[1:])]).client()
    ended = await run_tool_loop(
        client, garden.registry, model="m", messages="go", executor=garden.executor
    )
    told = [json.loads(m["content"]) for m in ended.messages if m["role"] == "tool"]
    assert garden.done == ["north"] and told[-1]["error"]["kind"] == "approval-denied"
