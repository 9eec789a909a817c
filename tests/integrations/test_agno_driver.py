"""Agno agents as participants: history, tools in the turn, routing, pauses."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("agno")

from agno.tools import Toolkit
from agno.tools.function import Function

import agent_adapter as aa
from agent_adapter.integrations.agno import agno_function
from agent_adapter.integrations.discovery import driver_for
from agent_adapter.network.channels.views import ViewMessage
from agent_adapter.network.turns.turn_runner import run_round
from agent_adapter.network.workflow_helpers import set_context
from tests.network._turns import FakePort, executor_of, turn_of_ann

from ._agno_agent import agent_of, error_of, shown

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


@tools.tool
def choose(name: str) -> aa.Handoff:
    """Chooses who is next."""
    return aa.Handoff(name, "chosen")


@tools.tool
async def count(channel: aa.ChannelInject, state: aa.ChannelStateInject) -> int:
    """Counts up."""
    number: int = state.context_vars.get("count", 0) + 1
    await set_context(channel, "count", number)
    return number


@tools.tool(confirm=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def _round(agent: Any, **options: Any) -> FakePort:
    port = FakePort()
    driver = driver_for(agent)
    assert driver is not None
    await run_round(agent, turn_of_ann(port, **options), driver.drive)
    return port


def _exported(*functions: Any, executor: Any = None) -> list[Any]:
    runner = executor or executor_of()
    return [agno_function(aa.spec_of(item), executor=runner) for item in functions]


async def test_the_agent_reads_its_view() -> None:
    """History is what the turn shows, own words as the model's, then the message to answer."""
    agent = agent_of([])
    messages = [ViewMessage(text="[bob]: one"), ViewMessage(text="two", own=True)]
    port = await _round(agent, messages=messages)
    read = [(item.role, item.content) for item in agent.model.seen[0]]  # type: ignore[union-attr]  # the scripted model
    assert read == [("user", "[bob]: one"), ("assistant", "two"), ("user", "[bob]: hello")]
    assert port.body == "done"


async def test_an_exported_tool_routes() -> None:
    """The typed result of a tool of ours routes, although Agno keeps only text."""
    agent = agent_of(_exported(choose), [("c1", "choose", {"name": "bob"})])
    assert (await _round(agent)).routing["target"] == "B"


async def test_a_second_attempt_repeats_no_call() -> None:
    """Calls that ended are answered from record, native ones, routing and changes included."""
    ran: list[str] = []

    def note(word: str) -> str:
        """Notes a word."""
        ran.append(word)
        return f"noted {word}"

    executor, calls = executor_of(), [("c1", "count", {}), ("c2", "note", {"word": "x"})]
    script = [calls, [("c3", "choose", {"name": "bob"})]]
    ports: list[FakePort] = []
    for attempt in (1, 2):
        agent = agent_of([*_exported(count, choose, executor=executor), note], *script)
        staged = ports[0].staged if ports else []
        ports.append(await _round(agent, executor=executor, attempt=attempt, staged_before=staged))
    assert ran == ["x"]
    assert shown(agent)["c2"] == "noted x"
    assert ports[0].routing == ports[1].routing
    assert ports[1].adopted == [item.call_key for item in ports[0].staged]


async def test_a_native_tool_routes() -> None:
    """A plain function of the agent that returns a `Handoff` hands off."""

    def escalate(reason: str) -> aa.Handoff:
        """Escalates."""
        return aa.Handoff("bob", reason)

    agent = agent_of([escalate], [("c1", "escalate", {"reason": "hard"})])
    assert (await _round(agent)).routing["reason"] == "hard"


async def test_a_handoff_to_nobody_is_an_error_for_the_model() -> None:
    """The model reads who takes part, and nothing is routed."""
    agent = agent_of(_exported(choose), [("c1", "choose", {"name": "zoe"})])
    port = await _round(agent)
    assert port.routing == {"kind": "text"}
    assert "participants are ann, bob" in error_of(agent)["message"]


async def test_a_confirm_tool_parks_the_turn() -> None:
    """The run that pauses for a confirmation waits for the hub's port, and goes on after it."""
    executor = executor_of()
    executor.approval = aa.DeferredApproval(executor.store)
    script = [[("c1", "pay", {"amount": 5})], "paid it"]
    first = await _round(agent_of(_exported(pay), *script), executor=executor)
    assert (len(first.waits_for), first.packets) == (1, [])
    await aa.Inbox(executor.store).approve(first.waits_for[0], reviewer="eve")
    agent = agent_of(_exported(pay, executor=executor), *script)
    assert (await _round(agent, executor=executor, attempt=2)).body == "paid it"


async def test_without_a_port_a_confirm_tool_is_denied() -> None:
    """The hub that has nobody to ask denies, and the model reads why."""
    agent = agent_of(_exported(pay), [("c1", "pay", {"amount": 5})])
    assert (await _round(agent)).body == "done"
    assert "no approval port" in error_of(agent)["message"]


async def test_a_tools_own_hook_is_refused() -> None:
    """Hooks of a single tool would vanish in the channel, so they are refused with the fix."""

    def note(word: str) -> str:
        """Notes a word."""
        return word

    function = Function.from_callable(note)
    function.tool_hooks = [lambda function_call, arguments: function_call(**arguments)]
    [error] = (await _round(agent_of([function]))).errors
    assert "give them to the agent" in str(error)


async def test_the_agent_itself_stays_as_it_is() -> None:
    """A round works on a copy: tools and hooks of the agent are not touched."""
    agent = agent_of([])
    await _round(agent, tools=[aa.spec_of(count)])
    assert (agent.tools, agent.tool_hooks) == ([], None)


@pytest.mark.parametrize("in_toolkit", [False, True])
async def test_a_native_confirmation_asks_the_hubs_port(in_toolkit: bool) -> None:
    """A function of Agno's that requires confirmation parks the turn, and runs once after it."""
    ran: list[int] = []

    def send(amount: int) -> str:
        """Sends."""
        ran.append(amount)
        return f"sent {amount}"

    function = Function.from_callable(send)
    function.requires_confirmation = True
    toolkit = Toolkit(name="post", tools=[send], requires_confirmation_tools=["send"])
    executor = executor_of()
    executor.approval = aa.DeferredApproval(executor.store)
    native = toolkit if in_toolkit else function
    script = [[("c1", "send", {"amount": 5})], "sent it"]
    [record] = (await _round(agent_of([native], *script), executor=executor)).waits_for
    await aa.Inbox(executor.store).approve(record, reviewer="eve")
    port = await _round(agent_of([native], *script), executor=executor, attempt=2)
    assert (port.body, ran, function.requires_confirmation) == ("sent it", [5], True)
