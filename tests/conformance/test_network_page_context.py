"""Context variables: written by tools, read by transitions and tools, given at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_CONTEXT_SET,
    AgentTarget,
    ChannelInject,
    ChannelStateInject,
    ContextEquals,
    FromSpeaker,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.network.workflow_helpers import delete_context, set_context

from ._network import STORES, call, closed, run_on

pytestmark = pytest.mark.anyio


async def set_route(route: str, channel: ChannelInject) -> str:
    """Notes where the ticket goes."""
    if channel is None:
        return "no active channel"
    await set_context(channel, "route", route)
    return f"route set to {route!r}"


async def set_route_raw(route: str, channel: ChannelInject) -> str:
    """Notes it with the event itself."""
    await channel.send("", event_type=EV_CONTEXT_SET, event_data={"set": {"route": route}})
    return "set"


async def clear_route(channel: ChannelInject) -> str:
    """Forgets where the ticket goes."""
    await delete_context(channel, "route")
    return "cleared"


async def increment_counter(channel: ChannelInject, state: ChannelStateInject) -> str:
    """Counts up."""
    if state is None or channel is None:
        return "no active channel"
    current = state.context_vars.get("counter", 0)
    await set_context(channel, "counter", current + 1)
    return f"counter now {current + 1}"


class Desk:
    """A user, a triage agent and a security agent on one hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.hc = HubClient(LocalLink(hub), hub=hub)

    async def agent(self, name: str, *turns: Any, tools: tuple[Any, ...] = ()) -> Any:
        """Register an AG2 agent whose model plays `turns`."""
        agent = Agent(name, config=TestConfig(*turns), tools=list(tools))
        return await self.hc.register(agent, Passport(name=name), Resume(), attach_plugin=False)


@pytest.mark.parametrize("tool", [set_route, set_route_raw])
@pytest.mark.parametrize("kind", STORES)
async def test_a_transition_reads_what_a_tool_wrote(kind: str, tool: Any, tmp_path: Path) -> None:
    """`ContextEquals` sees the value that the same turn has set, by helper or by raw event."""

    async def program(store: Any) -> Any:
        async with await Hub.open(store) as hub:
            desk = Desk(hub)
            arguments = '{"route": "security"}'
            triage = await desk.agent(
                "triage", call(tool.__name__, arguments), "routed", tools=(tool,)
            )
            security = await desk.agent("security", "looked at it")
            user = await desk.hc.register_human(Passport(name="user"))
            graph = TransitionGraph(
                initial_speaker=user.agent_id,
                transitions=[
                    # The way out comes before the sticky rule.
                    Transition(
                        when=FromSpeaker(security.agent_id), then=TerminateTarget("secured")
                    ),
                    Transition(
                        when=ContextEquals(key="route", value="security"),
                        then=AgentTarget(security.agent_id),
                    ),
                    Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(triage.agent_id)),
                ],
                default_target=TerminateTarget("unrouted"),
            )
            channel = await user.open(
                type="workflow", target=["triage", "security"], knobs={"graph": graph.to_dict()}
            )
            await channel.send("Ticket")
            end = await user.wait_for_channel_event(
                channel_id=channel.channel_id, predicate=closed, timeout=60
            )
            return end.event_data["reason"], (
                await hub.adapter_state(channel.channel_id)
            ).context_vars

    for reason, variables in await run_on(kind, tmp_path, program):
        assert (reason, variables) == ("secured", {"route": "security"})


@pytest.mark.parametrize("kind", STORES)
async def test_a_tool_reads_and_writes(kind: str, tmp_path: Path) -> None:
    """Two calls of one round count to two, on top of the value given at the start."""

    async def program(store: Any) -> Any:
        async with await Hub.open(store) as hub:
            desk = Desk(hub)
            counts = (call("increment_counter"), call("increment_counter"))
            worker = await desk.agent("worker", *counts, "counted", tools=(increment_counter,))
            user = await desk.hc.register_human(Passport(name="user"))
            graph = TransitionGraph.sequence([user.agent_id, worker.agent_id])
            channel = await user.open(
                type="workflow",
                target=[worker.agent_id],
                knobs={
                    "graph": graph.to_dict(),
                    "context_vars": {"counter": 5, "ticket_id": "T-1"},
                },
            )
            await channel.send("Ticket")
            await user.wait_for_channel_event(
                channel_id=channel.channel_id, predicate=closed, timeout=60
            )
            return (await hub.adapter_state(channel.channel_id)).context_vars

    for variables in await run_on(kind, tmp_path, program):
        assert variables == {"counter": 7, "ticket_id": "T-1"}


@pytest.mark.parametrize("kind", STORES)
async def test_a_sticky_condition_is_cleared_by_its_agent(kind: str, tmp_path: Path) -> None:
    """The agent that was routed to deletes the key, so that the rule does not fire for ever."""

    async def program(store: Any) -> Any:
        async with await Hub.open(store) as hub:
            desk = Desk(hub)
            security = await desk.agent(
                "security", call("clear_route"), "done here", tools=(clear_route,)
            )
            user = await desk.hc.register_human(Passport(name="user"))
            graph = TransitionGraph(
                user.agent_id,
                [
                    Transition(
                        when=ContextEquals("route", value="security"),
                        then=AgentTarget(security.agent_id),
                    )
                ],
                TerminateTarget("cleared"),
                max_turns=6,
            )
            knobs = {"graph": graph.to_dict(), "context_vars": {"route": "security"}}
            channel = await user.open(type="workflow", target=["security"], knobs=knobs)
            await channel.send("Ticket")
            end = await user.wait_for_channel_event(
                channel_id=channel.channel_id, predicate=closed, timeout=60
            )
            return end.event_data["reason"], (
                await hub.adapter_state(channel.channel_id)
            ).turn_count

    assert set(await run_on(kind, tmp_path, program)) == {("cleared", 2)}


@pytest.mark.parametrize("kind", STORES)
async def test_a_sticky_condition_loops_until_the_limit(kind: str, tmp_path: Path) -> None:
    """Nobody clears the key, so the same agent is routed to until `max_turns`."""

    async def program(store: Any) -> Any:
        async with await Hub.open(store) as hub:
            desk = Desk(hub)
            security = await desk.agent("security", "again")
            user = await desk.hc.register_human(Passport(name="user"))
            graph = TransitionGraph(
                user.agent_id,
                [
                    Transition(
                        when=ContextEquals("route", value="security"),
                        then=AgentTarget(security.agent_id),
                    )
                ],
                TerminateTarget("never"),
                max_turns=4,
            )
            knobs = {"graph": graph.to_dict(), "context_vars": {"route": "security"}}
            channel = await user.open(type="workflow", target=["security"], knobs=knobs)
            await channel.send("Ticket")
            end = await user.wait_for_channel_event(
                channel_id=channel.channel_id, predicate=closed, timeout=60
            )
            return end.event_data["reason"]

    assert set(await run_on(kind, tmp_path, program)) == {"max_turns"}


async def test_off_a_channel_the_markers_are_none() -> None:
    """An agent asked outside of any channel still runs its tools; they receive `None`."""
    agent = Agent(
        "alone", config=TestConfig(call("set_route", '{"route": "x"}'), "ok"), tools=[set_route]
    )
    reply = await agent.ask("route it")
    assert reply.body == "ok"
