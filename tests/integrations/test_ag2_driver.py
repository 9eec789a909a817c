"""AG2 agents as participants: history, tools in the turn, routing, pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("ag2")

import ag2.network as ag2_network
from ag2 import Agent, Context
from ag2.events import BaseEvent, ModelRequest, ToolCallEvent
from ag2.testing import TestConfig

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tool
from agent_adapter.integrations.discovery import driver_for
from agent_adapter.network import ChannelInject, ChannelStateInject
from agent_adapter.network.channels.views import ViewMessage
from agent_adapter.network.turns.turn_runner import run_round
from agent_adapter.network.workflow_helpers import set_context
from tests.network._turns import FakePort, executor_of, turn_of_ann

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


@tools.tool
def choose(name: str) -> aa.Handoff:
    """Chooses who is next."""
    return aa.Handoff(name, "chosen")


@tools.tool(confirm=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


class Desk:
    """An agent of ann's with native tools, and what they did."""

    def __init__(self, *turns: Any, **options: Any) -> None:
        self.done: list[str] = []
        self.agent = Agent("ann", prompt="Be brief.", config=TestConfig(*turns, **options))

        @self.agent.tool
        async def escalate(reason: str = "") -> ag2_network.Handoff:
            """Escalates."""
            self.done.append(f"escalate {reason}")
            return ag2_network.Handoff(target="bob", reason=reason)

        @self.agent.tool
        async def count(channel: ChannelInject, state: ChannelStateInject) -> int:
            """Counts up, with this library's markers."""
            number: int = state.context_vars.get("count", 0) + 1
            await set_context(channel, "count", number)
            self.done.append(f"count {number}")
            return number

        @self.agent.tool
        async def mark(
            channel: ag2_network.ChannelInject, state: ag2_network.ChannelStateInject
        ) -> str:
            """Marks, with AG2's own markers."""
            await set_context(channel, "seen", sorted(state.context_vars))
            return "marked"

        @self.agent.tool
        def fail(number: int) -> str:
            """Fails."""
            self.done.append("fail")
            raise ValueError("no luck")

    async def round(self, **options: Any) -> FakePort:
        """One round of the agent."""
        port = FakePort()
        driver = driver_for(self.agent)
        assert driver is not None
        await run_round(self.agent, turn_of_ann(port, **options), driver.drive)
        return port


def _call(name: str, arguments: str = "{}") -> ToolCallEvent:
    return ToolCallEvent(name, arguments=arguments)


async def test_the_agent_reads_its_view() -> None:
    """History is what the turn shows, own words as the model's, then the message to answer."""
    seen: list[Sequence[BaseEvent]] = []

    class Spy(TestConfig):
        def create(self) -> Any:
            inner = super().create()

            async def client(
                messages: Sequence[BaseEvent], context: Context, **options: Any
            ) -> Any:
                seen.append(list(messages))
                return await inner(messages, context, **options)

            return client

    desk = Desk()
    desk.agent = Agent("ann", config=Spy("hi"))
    messages = [
        ViewMessage(text="Earlier: 3 messages.", summary=True),
        ViewMessage(text="[bob]: one"),
        ViewMessage(text="two", own=True),
    ]
    await desk.round(messages=messages)
    kinds = [type(item).__name__ for item in seen[0]]
    assert kinds == ["CompactionSummary", "ModelRequest", "ModelMessage", "ModelRequest"]
    assert isinstance(seen[0][-1], ModelRequest)
    assert "hello" in repr(seen[0][-1])


async def test_a_handoff_of_ag2_routes() -> None:
    """A native tool that returns AG2's own `Handoff` hands off to that participant."""
    port = await Desk(_call("escalate", '{"reason": "hard"}'), "over to bob").round()
    assert port.body == "over to bob"
    assert port.routing == {"kind": "handoff", "tool": "escalate", "reason": "hard", "target": "B"}


async def test_native_tools_change_the_channel() -> None:
    """Parameters marked by either library receive the channel and its present state."""
    port = await Desk(_call("count"), _call("count"), _call("mark"), "done").round()
    assert [item.body["set"] for item in port.staged] == [
        {"count": 1},
        {"count": 2},
        {"seen": ["count"]},
    ]


async def test_a_second_attempt_repeats_no_native_call() -> None:
    """Native calls that ended are answered from record, routing and changes included."""
    executor = executor_of()
    script = (_call("count"), _call("escalate", '{"reason": "x"}'), "done")
    desk = Desk(*script)
    first = await desk.round(executor=executor)
    second = await desk.round(executor=executor, attempt=2, staged_before=first.staged)
    assert desk.done == ["count 1", "escalate x"]
    assert second.routing == first.routing
    assert second.adopted == [item.call_key for item in first.staged]


async def test_calls_route_in_the_models_order() -> None:
    """Of two routing calls of one message the first counts."""
    both = [_call("escalate", '{"reason": "1"}'), _call("escalate", '{"reason": "2"}')]
    assert (await Desk(both, "done").round()).routing["reason"] == "1"


async def test_an_exported_tool_routes() -> None:
    """A tool of this library in the agent hands off as well."""
    desk = Desk(_call("choose", '{"name": "bob"}'), "done")
    desk.agent.tools.append(ag2_tool(aa.spec_of(choose), executor=executor_of()))
    assert (await desk.round()).routing["target"] == "B"


async def test_a_handoff_to_nobody_is_an_error_for_the_model() -> None:
    """The model reads who takes part, and can still do something else."""
    desk = Desk(_call("choose", '{"name": "zoe"}'), "sorry", raise_tool_errors=False)
    desk.agent.tools.append(ag2_tool(aa.spec_of(choose), executor=executor_of()))
    port = await desk.round()
    assert (port.body, port.routing) == ("sorry", {"kind": "text"})


async def test_a_native_handoff_to_nobody_is_an_error_too() -> None:
    """AG2's own `Handoff` to a stranger is withheld in the round, and routes nothing."""
    desk = Desk(_call("stray"), "sorry", raise_tool_errors=False)

    @desk.agent.tool
    def stray() -> ag2_network.Handoff:
        """Strays."""
        return ag2_network.Handoff(target="zoe")

    port = await desk.round()
    assert (port.body, port.routing) == ("sorry", {"kind": "text"})


async def test_a_failing_tool_does_not_route() -> None:
    """A native error is shown to the model as AG2 shows it, and its call is no routing call."""
    desk = Desk(_call("fail", '{"number": 1}'), "it failed", raise_tool_errors=False)
    port = await desk.round()
    assert (desk.done, port.body, port.routing["kind"]) == (["fail"], "it failed", "text")


async def test_arguments_that_do_not_fit_leave_no_doubt() -> None:
    """AG2's own argument check runs before the tool: nothing happened, and it may be repeated."""
    desk = Desk(*[_call("fail", '{"number": "x"}')] * 2, "given up", raise_tool_errors=False)
    assert (await desk.round()).body == "given up"


async def test_an_error_of_the_model_fails_the_round() -> None:
    """What the model's client raises is the attempt's failure."""
    [error] = (await Desk(OSError("no model")).round()).errors
    assert str(error) == "no model"


async def test_a_confirm_tool_parks_the_turn() -> None:
    """The round of an agent whose call waits for a person sends no packet."""
    executor = executor_of()
    executor.approval = aa.DeferredApproval(executor.store)
    desk = Desk(_call("pay", '{"amount": 5}'), "paid it")
    desk.agent.tools.append(ag2_tool(aa.spec_of(pay), executor=executor))
    first = await desk.round(executor=executor)
    assert (len(first.waits_for), first.packets) == (1, [])
    await aa.Inbox(executor.store).approve(first.waits_for[0], reviewer="eve")
    assert (await desk.round(executor=executor, attempt=2)).body == "paid it"


async def test_the_channels_tools_are_offered() -> None:
    """Specs that the turn brings become AG2 tools of the round alone."""
    desk = Desk(_call("choose", '{"name": "bob"}'), "done")
    port = await desk.round(tools=[aa.spec_of(choose)])
    assert port.routing["target"] == "B"
    assert all(getattr(tool, "name", "") != "choose" for tool in desk.agent.tools)
