"""Agno: which call a call is, through real agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("agno")

from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.run.agent import RunOutput

import agent_adapter as aa
from agent_adapter.integrations.agno import INTEGRATION, agno_functions, resolve_requirements

from ._agno_agent import agent_of, settled, shown
from ._agno_model import ScriptedModel

pytestmark = pytest.mark.anyio

WATER = ("call_0", "water", {"bed": "north"})


class Garden:
    """A registry with one write, and what it did."""

    def __init__(self, store: Any = None, approval: Any = None, **policy: Any) -> None:
        self.done: list[str] = []
        self.store = store or aa.open_store("memory://")
        self.registry = aa.ToolRegistry()
        self.executor = aa.Executor(self.registry, store=self.store, approval=approval)
        self.seen: list[aa.ToolContext] = []

        @self.registry.tool(**policy)
        async def water(bed: str, ctx: aa.ToolContext) -> str:
            """Water a bed."""
            self.seen.append(ctx)
            self.done.append(bed)
            return f"watered {bed} ({len(self.done)})"

    def agent(self, *turns: Any, **options: Any) -> Any:
        """An agent with the tool."""
        tools = agno_functions(self.registry, executor=self.executor)
        return agent_of(tools, *turns, **options)


class Failing(ScriptedModel):
    """A scripted model; a turn that is an exception is raised."""

    async def ainvoke(self, messages: list[Any], **options: Any) -> ModelResponse:
        """The next turn of the script."""
        if self.turns and isinstance(self.turns[0], Exception):
            raise self.turns.pop(0)
        return await super().ainvoke(messages, **options)


def _retried(garden: Garden, *turns: Any, **options: Any) -> Any:
    agent = garden.agent(retries=2, delay_between_retries=0, **options)
    agent.model = Failing(turns=list(turns))
    return agent


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_i2_equal_ids_in_three_responses_are_three_calls(effects: Any, call_id: str) -> None:
    """I2: three model responses of one run repeat id and arguments: three calls."""
    garden = Garden(effects=effects)
    call = (call_id, *WATER[1:])
    await garden.agent([call], [call], [call]).arun("go")
    assert garden.done == ["north"] * 3


async def test_i2_equal_calls_of_one_response_are_two_calls() -> None:
    """I2: twins in one response have an index each, in one run and conversation."""
    garden = Garden()
    output = await garden.agent([WATER, WATER]).arun("go")
    assert garden.done == ["north", "north"]
    first, second = (ctx.identity for ctx in garden.seen)
    assert first.position and second.position
    assert first.position[0] == second.position[0]
    assert (first.position[1], second.position[1]) == (0, 1)
    assert (first.run, first.conversation) == (output.run_id, output.session_id)


@pytest.mark.parametrize("prompt", ["go", [Message(role="user", content="go")]])
async def test_i6_a_retried_run_repeats_no_write(prompt: Any) -> None:
    """I6: the write ends, the model fails, the retried run asks again under a fresh id."""
    garden = Garden()
    again = ("call_1", *WATER[1:])
    agent = _retried(garden, [WATER], RuntimeError("overloaded"), [again])
    await agent.arun(prompt)
    assert garden.done == ["north"]
    assert json.loads(shown(agent)["call_1"]) == "watered north (1)"


async def test_i6_a_retried_run_may_go_another_way_only_when_asked() -> None:
    """I6: a write that the first making did not make is a divergence."""
    garden = Garden()
    other = ("call_1", "water", {"bed": "south"})
    agent = _retried(garden, [WATER], RuntimeError("overloaded"), [other])
    await agent.arun("go")
    assert garden.done == ["north"]
    assert json.loads(shown(agent)["call_1"])["error"]["kind"] == "tool-in-doubt"


async def test_i6_a_hook_of_agno_is_no_retry() -> None:
    """Agno shows hooks a copy of the messages; a call through one is no replay."""
    garden = Garden()

    async def hook(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
        return await function_call(**arguments)

    await garden.agent([WATER], [WATER], tool_hooks=[hook]).arun("go")
    assert garden.done == ["north", "north"]
    assert [ctx.identity.attempt for ctx in garden.seen] == [1, 1]


async def test_a_session_with_history_counts_its_own_messages_only() -> None:
    """The next run of a session is a new run, although its messages begin with the old ones."""
    from agno.db.in_memory import InMemoryDb

    garden = Garden()
    agent = garden.agent(
        [WATER], "done", [WATER], db=InMemoryDb(), session_id="s", add_history_to_context=True
    )
    await agent.arun("go")
    await agent.arun("go")
    assert garden.done == ["north", "north"]
    first, second = (ctx.identity for ctx in garden.seen)
    assert (first.conversation, second.attempt) == (second.conversation, 1)
    assert first.run != second.run


async def test_a_pause_keeps_the_place_through_a_serialised_run() -> None:
    """Twins that are paused, approved one by one and continued elsewhere run once each."""
    garden = Garden(confirm=True)
    port, inbox = aa.DeferredApproval(garden.store), aa.Inbox(garden.store)
    output: Any = await garden.agent([WATER, WATER]).arun("go")
    with pytest.raises(aa.ApprovalPending) as held:
        await resolve_requirements(output, port, garden.registry)
    for id in held.value.ids:
        await inbox.approve(id, reviewer="ann")
    output = RunOutput.from_dict(json.loads(json.dumps(output.to_dict())))
    await settled(garden.agent(), output, port, garden.registry)
    assert len(held.value.ids) == 2 and garden.done == ["north", "north"]


async def test_a_native_call_outside_of_a_run_has_no_identity() -> None:
    """`bind_context` invents no run."""
    from agno.tools.function import Function, FunctionCall

    found = INTEGRATION.bind_context(FunctionCall(function=Function(name="water"))).identity
    assert (found.run, found.position) == (None, None)
