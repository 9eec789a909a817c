"""More shapes in which frameworks rewrite, hand on or repeat: each call is still its own."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("langchain")

from ag2 import Agent
from ag2.testing import TestConfig
from agno.team import Team
from langchain.agents.middleware import SummarizationMiddleware
from langgraph.checkpoint.memory import InMemorySaver

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tools
from agent_adapter.integrations.agno import agno_functions
from agent_adapter.integrations.langchain import langchain_tools

from . import _agno_agent, _langchain_agent
from ._ag2_agent import call_event
from ._agno_model import ScriptedModel
from ._langchain_model import scripted
from ._shop import Shop

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("call_0", "refund", REFUND)


async def test_i24_langchains_own_summary_begins_no_run() -> None:
    """I24: the summary is a message of a human for LangChain: run, limits and calls stay."""
    shop = Shop(confirm=False)
    limits = aa.RunLimits(max_calls=3)
    shop.executor = aa.Executor(shop.registry, store=shop.store, limits=limits)
    summing = SummarizationMiddleware(
        model=scripted(*["a summary"] * 9), trigger=("messages", 4), keep=("messages", 2)
    )
    tools = langchain_tools(shop.registry, executor=shop.executor)
    agent = _langchain_agent.agent_of(
        tools, *[[CALL]] * 4, middleware=[summing], checkpointer=InMemorySaver()
    )
    output = await _langchain_agent.run(agent, "t1")
    assert any("summary" in str(m.content) for m in output["messages"]), output
    assert shop.refunds == [REFUND] * 3
    assert len({ctx.identity.run for ctx in shop.contexts}) == 1


async def test_i3_two_members_of_a_team_make_equal_calls() -> None:
    """I3: each member of an Agno team asks for the same under the same id: both run."""
    shop = Shop(confirm=False)
    members = []
    for name in ("ann", "bob"):
        member = _agno_agent.agent_of(agno_functions(shop.registry, executor=shop.executor), [CALL])
        member.name = member.id = name
        members.append(member)
    delegated = [
        (f"t{n}", "delegate_task_to_member", {"member_id": name, "task": "refund A1"})
        for n, name in enumerate(("ann", "bob"))
    ]
    team = Team(members=list(members), model=ScriptedModel(turns=[delegated]), telemetry=False)
    await team.arun("go")
    assert shop.refunds == [REFUND] * 2
    assert len({ctx.identity.run for ctx in shop.contexts}) == 2


@pytest.mark.parametrize("shared", [True, False])
async def test_i3_agents_of_ag2_that_talk_make_equal_calls(shared: bool) -> None:
    """I3: two agents, on one stream one after the other, or one as a tool of the other's."""
    shop = Shop(confirm=False)
    event = call_event("refund", REFUND, call_id="call_0")

    def agent(name: str, *turns: Any, tools: Any = ()) -> Any:
        own = ag2_tools(shop.registry, executor=shop.executor)
        config = TestConfig(*turns, "done", raise_tool_errors=False)
        return Agent(name, config=config, tools=[*own, *tools])

    if shared:
        reply = await agent("ann", [event]).ask("go")
        again = call_event("refund", REFUND, call_id="call_0")
        await agent("bob", [again]).ask("go", stream=reply.context.stream)
    else:
        bob = agent("bob", [call_event("refund", REFUND, call_id="call_0")])
        asked = call_event("task_bob", {"objective": "refund"}, call_id="call_1")
        tool = bob.as_tool(description="Refunds.", name="task_bob")
        await agent("ann", [event], [asked], tools=[tool]).ask("go")
    assert shop.refunds == [REFUND] * 2
    assert len({ctx.identity.run for ctx in shop.contexts}) == 2
