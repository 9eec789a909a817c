"""An agent's own tools in a channel's round, in every framework that takes part."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.native import NativePolicies
from agent_adapter.integrations.discovery import driver_for
from agent_adapter.network.turns.drivers import native_policies
from agent_adapter.store import switch
from tests.network._turns import executor_of

from ._native_agents import INSTALLED, Desk

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("framework", INSTALLED),
    # Agno logs what its tools raise.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

PAY = ("charge", {"amount": 5})
WRITE = {"charge": aa.Policy(effects="write")}


async def test_a_failed_call_runs_again_when_the_model_calls_again(framework: str) -> None:
    """N1: the exception goes to the model, and its next call of the tool runs it."""
    desk = Desk(framework, failures=1)
    port = await desk.round(PAY, PAY)
    assert (port.body, desk.done, port.waits_for) == ("done", [5], [])
    assert await desk.calls() == [("idempotent", "failed"), ("idempotent", "ok")]


async def test_a_repeated_round_gets_what_has_happened(framework: str) -> None:
    """The recorded outcome answers in the second attempt; nothing runs twice."""
    desk = Desk(framework)
    for attempt in (1, 2):
        assert (await desk.round(PAY, attempt=attempt)).body == "done"
    assert desk.done == [5]


async def test_a_repeated_round_runs_a_failed_call_again(framework: str) -> None:
    """A failure is no outcome to hand out: the tool may work now."""
    desk = Desk(framework, failures=1)
    for attempt in (1, 2):
        await desk.round(PAY, attempt=attempt)
    assert desk.done == [5]


async def test_a_repeated_round_prefers_what_has_happened_to_a_failure(framework: str) -> None:
    """Failed, then done: the next attempt is answered with what was done, and runs nothing."""
    desk = Desk(framework, failures=1)
    for attempt in (1, 2):
        await desk.round(PAY, PAY, attempt=attempt)
    assert (desk.done, desk.entered) == ([5], 2)


async def test_a_tool_said_to_write_is_not_run_again(framework: str) -> None:
    """After a failure nobody knows what happened: the next call waits for a person."""
    desk = Desk(framework, failures=1)
    port = await desk.round(PAY, PAY, tools=WRITE)
    assert (desk.entered, len(port.waits_for), port.packets) == (1, 1, [])


async def test_a_policy_for_all_tools_counts(framework: str) -> None:
    """`"*"` is the policy of every own tool that has none of its own."""
    desk = Desk(framework)
    await desk.round(PAY, tools={"*": aa.Policy(effects="write")})
    assert await desk.calls() == [("write", "ok")]


async def test_the_tool_decorator_on_a_native_function_counts(framework: str) -> None:
    """What its author said with `@tool` holds, also against the policy for all tools."""
    desk = Desk(framework, declared=aa.ToolRegistry().tool(effects="write", confirm=True))
    desk.executor.approval = aa.DeferredApproval(desk.executor.store)
    port = await desk.round(PAY, tools={"*": aa.Policy(effects="read")})
    assert (desk.done, len(port.waits_for)) == ([], 1)


async def test_a_confirmed_native_tool_waits_and_runs_once(framework: str) -> None:
    """A policy with `confirm=True` parks the turn; after the yes the tool runs once."""
    desk = Desk(framework)
    desk.executor.approval = aa.DeferredApproval(desk.executor.store)
    tools = {"charge": aa.Policy(effects="write", confirm=True)}
    [record] = (await desk.round(PAY, tools=tools)).waits_for
    assert desk.done == []
    await aa.Inbox(desk.executor.store).approve(record, reviewer="eve")
    for attempt in (2, 3):
        assert (await desk.round(PAY, tools=tools, attempt=attempt)).body == "done"
    assert desk.done == [5]


async def test_without_anyone_to_ask_a_confirmed_tool_is_denied(framework: str) -> None:
    """The model reads the refusal, and the tool does not run."""
    desk = Desk(framework)
    port = await desk.round(PAY, tools={"charge": aa.Policy(confirm=True)})
    assert (port.body, desk.done) == ("done", [])


async def test_limits_count_native_calls(framework: str) -> None:
    """`RunLimits` of the executor hold for an agent's own tools."""
    desk = Desk(framework)
    desk.executor = executor_of(limits=aa.RunLimits(max_calls=1))
    await desk.round(PAY, ("charge", {"amount": 6}))
    assert desk.done == [5]


async def test_a_cancelled_run_begins_no_native_call(framework: str) -> None:
    """A call after `runs cancel` is refused before the tool is entered."""
    desk = Desk(framework)
    await desk.round(PAY)
    await desk.executor.store.write(
        lambda tx: switch.cancel_run(tx, "trn_1", by="eve", reason="stop")
    )
    await desk.round(("charge", {"amount": 6}))
    assert desk.done == [5]


async def test_a_native_tool_may_take_only_its_time(framework: str) -> None:
    """A `timeout` of a policy ends the call for the model."""
    import asyncio

    async def charge(amount: int) -> str:
        """Charge."""
        await asyncio.Event().wait()
        return ""

    desk = Desk(framework, declared=lambda function: charge)
    port = await desk.round(PAY, tools={"charge": aa.Policy(timeout=0.05)})
    assert port.body == "done"
    assert await desk.calls() == [("idempotent", "failed")]


def test_a_policy_for_a_tool_that_is_not_there_is_refused(framework: str) -> None:
    """The error names the tools that the agent has, and the near match."""
    agent = Desk(framework).agent()
    with pytest.raises(aa.ToolDefinitionError) as refused:
        native_policies(agent, "ann", {"chrage": aa.Policy(confirm=True)})
    assert str(refused.value) == (
        "ann has no tool 'chrage' (did you mean 'charge'?); it has charge"
    )


def test_known_tools_are_listed(framework: str) -> None:
    """Each driver knows its agents' own tools, with what their authors wrote about them."""
    agent: Any = Desk(framework).agent()
    driver: Any = driver_for(agent)
    known = driver.native_tools(agent)
    assert {name: tool.description for name, tool in known.tools.items()} == {
        "charge": "Charge an amount."
    }
    NativePolicies({"charge": aa.Policy(effects="write")}).check(known, "ann")
