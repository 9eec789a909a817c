"""The same programs over AG2's own network and over this one: same words, same ends."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.knowledge import MemoryKnowledgeStore
from ag2.testing import TestConfig

from ._network import Rounds, call, closed

pytestmark = pytest.mark.anyio


class Stage:
    """A hub of either library, and how to fill and read it."""

    def __init__(self, net: Any, helpers: Any, hub: Any) -> None:
        self.net = net
        self.helpers = helpers
        self.hub = hub
        self.hc = net.HubClient(net.LocalLink(hub), hub=hub)

    async def join(self, name: str, config: Any, *tools: Callable[..., Any]) -> Any:
        """Register an AG2 agent."""
        agent = Agent(name, config=config, tools=list(tools))
        passport = self.net.Passport(name=name)
        return await self.hc.register(agent, passport, self.net.Resume(), attach_plugin=False)

    async def run(self, opener: Any, others: list[Any], graph: Any, **knobs: Any) -> Any:
        """Why the channel ended, and who said what."""
        channel = await opener.open(
            type="workflow",
            target=[item.agent_id for item in others],
            knobs={"graph": graph.to_dict(), **knobs},
        )
        await channel.send("the task")
        end = await opener.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=closed, timeout=60
        )
        said = [
            (self.hub.name_for(item.sender_id), item.event_type, item.event_data)
            for item in await self.hub.read_wal(channel.channel_id)
            if item.event_type in (self.net.EV_TEXT, self.net.EV_PACKET, self.net.EV_CONTEXT_SET)
        ]
        return end.event_data["reason"], [self._named(*item) for item in said]

    def _named(self, sender: str, event: str, data: dict[str, Any]) -> Any:
        """An entry without ids, and without what either library may leave out of it."""
        data = {**data, "set": data.get("set") or {}, "delete": data.get("delete") or []}
        routing = dict(data.get("routing") or {})
        if routing.get("target"):
            routing["target"] = self.hub.name_for(routing["target"])
        return sender, event, {**data, "routing": routing}


Program = Callable[[Stage], Awaitable[Any]]


async def pipeline(stage: Stage) -> Any:
    """Three in a row."""
    three = [await stage.join(name, TestConfig(f"{name} here")) for name in ("a", "b", "c")]
    graph = stage.net.TransitionGraph.sequence([item.agent_id for item in three])
    return await stage.run(three[0], three[1:], graph)


async def circle(stage: Stage) -> Any:
    """Three in a circle, to the limit."""
    three = [await stage.join(name, TestConfig(f"{name} here")) for name in ("a", "b", "c")]
    ids = [item.agent_id for item in three]
    graph = stage.net.TransitionGraph.round_robin(participants=ids, max_turns=5)
    return await stage.run(three[0], three[1:], graph)


async def triage(stage: Stage) -> Any:
    """A typed handoff past the graph's own rule."""
    net = stage.net

    async def escalate(reason: str = "") -> Any:
        """Escalates."""
        return net.Handoff(target="security", reason=reason)

    script = TestConfig(call("escalate", '{"reason": "odd"}'), "over to you")
    user = await stage.join("user", TestConfig())
    first = await stage.join("triage", script, escalate)
    security = await stage.join("security", TestConfig("locked"))
    general = await stage.join("general", TestConfig("fine"))
    graph = net.TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            net.Transition(net.FromSpeaker(user.agent_id), net.AgentTarget(first.agent_id)),
            net.Transition(net.ToolCalled("escalate"), net.AgentTarget(general.agent_id)),
        ],
        default_target=net.TerminateTarget("done"),
    )
    return await stage.run(user, [first, security, general], graph)


async def rule_of_a_tool(stage: Stage) -> Any:
    """A tool that only the graph knows."""
    net = stage.net

    async def resolve(reason: str) -> str:
        """Resolves."""
        return "resolved"

    user = await stage.join("user", TestConfig())
    script = TestConfig(call("resolve", '{"reason": "easy"}'), "solved it")
    desk = await stage.join("desk", script, resolve)
    graph = net.TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            net.Transition(net.ToolCalled("resolve"), net.TerminateTarget("resolved")),
            net.Transition(net.FromSpeaker(user.agent_id), net.AgentTarget(desk.agent_id)),
        ],
        default_target=net.TerminateTarget("open"),
    )
    return await stage.run(user, [desk], graph)


async def feedback(stage: Stage) -> Any:
    """Variables written and read by tools, until one ends the loop."""
    net, helpers = stage.net, stage.helpers

    async def approve(channel: Any, state: Any) -> str:
        """Approves."""
        await helpers.set_context(channel, "count", state.context_vars.get("count", 0) + 1)
        await helpers.set_context(channel, "done", True)
        await helpers.delete_context(channel, "draft")
        return "approved"

    # The markers are those of the library under test.
    approve.__annotations__ = {
        "channel": net.ChannelInject,
        "state": net.ChannelStateInject,
        "return": str,
    }
    user = await stage.join("user", TestConfig())
    drafter = await stage.join("drafter", TestConfig("a draft"))
    reviewer = await stage.join("reviewer", Rounds(["again"], [call("approve"), "good"]), approve)
    graph = net.TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            net.Transition(net.ContextEquals("done", True), net.TerminateTarget("approved")),
            net.Transition(net.FromSpeaker(user.agent_id), net.AgentTarget(drafter.agent_id)),
            net.Transition(net.FromSpeaker(drafter.agent_id), net.AgentTarget(reviewer.agent_id)),
            net.Transition(net.FromSpeaker(reviewer.agent_id), net.AgentTarget(drafter.agent_id)),
        ],
        default_target=net.TerminateTarget("lost"),
        max_turns=10,
    )
    variables = {"count": 1, "draft": "x"}
    return await stage.run(user, [drafter, reviewer], graph, context_vars=variables)


async def _on(library: str, program: Program) -> Any:
    net = importlib.import_module(library)
    helpers = importlib.import_module(f"{library}.workflow_helpers")
    hub = await net.Hub.open(MemoryKnowledgeStore(), ttl_sweep_interval=0)
    try:
        return await program(Stage(net, helpers, hub))
    finally:
        await hub.close()


@pytest.mark.parametrize(
    "program", [pipeline, circle, triage, rule_of_a_tool, feedback], ids=lambda item: item.__name__
)
async def test_both_libraries_agree(program: Program) -> None:
    """Senders, texts, routing, variables and the reason of the end are the same."""
    assert await _on("agent_adapter.network", program) == await _on("ag2.network", program)
