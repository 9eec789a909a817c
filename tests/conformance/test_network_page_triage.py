"""Conditional handoffs: a triage agent routes by calling a tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_PACKET,
    AgentTarget,
    FromSpeaker,
    Handoff,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
    RevertToInitiatorTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)

from ._network import STORES, Rounds, call, closed, run_on, told

pytestmark = pytest.mark.anyio


def _triage_agent(*rounds: list[Any]) -> Agent:
    triage_agent = Agent("triage", prompt="Route it.", config=Rounds(*rounds))

    @triage_agent.tool
    async def escalate(reason: str = "") -> Handoff:
        """Hands the ticket to the security reviewer."""
        return Handoff(target="security", reason=reason)

    return triage_agent


async def _triage(store: Any, *rounds: list[Any]) -> tuple[Any, list[tuple[str, str]]]:
    """A user's ticket goes to triage, and from there to security or to a generalist."""
    hub = await Hub.open(store)
    hc = HubClient(LocalLink(hub), hub=hub)
    user = await hc.register_human(Passport(name="user", kind="human"))
    triage = await hc.register(
        _triage_agent(*rounds), Passport(name="triage"), Resume(), attach_plugin=False
    )
    security, general = [
        await hc.register(
            Agent(name, config=TestConfig(f"{name} has looked")),
            Passport(name=name),
            Resume(),
            attach_plugin=False,
        )
        for name in ("security", "general")
    ]
    graph = TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            Transition(when=ToolCalled("escalate"), then=AgentTarget(security.agent_id)),
            Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(triage.agent_id)),
            Transition(when=FromSpeaker(security.agent_id), then=RevertToInitiatorTarget()),
            Transition(when=FromSpeaker(triage.agent_id), then=AgentTarget(general.agent_id)),
        ],
        default_target=TerminateTarget(reason="triage_complete"),
        max_turns=20,
    )
    channel = await user.open(
        type="workflow",
        target=[triage.agent_id, security.agent_id, general.agent_id],
        knobs={"graph": graph.to_dict()},
    )
    await channel.send("Ticket: odd log-ins")
    spoken = await user.wait_for_channel_event(
        channel_id=channel.channel_id,
        predicate=lambda e: (
            closed(e) or (e.event_type, e.sender_id) == (EV_PACKET, security.agent_id)
        ),
        timeout=60,
    )
    lines = await told(hub, channel.channel_id)
    state = await hub.adapter_state(channel.channel_id)
    await hub.close()
    end = spoken.event_data.get("reason") if closed(spoken) else None
    return end or hub.name_for(state.expected_next_speaker), lines


@pytest.mark.parametrize("kind", STORES)
async def test_a_handoff_goes_to_the_name_it_gives(kind: str, tmp_path: Path) -> None:
    """`escalate` hands off to security, which hands back to whoever opened the channel."""

    async def program(store: Any) -> Any:
        return await _triage(store, [call("escalate", '{"reason": "two countries"}'), "escalated"])

    for turn_of, lines in await run_on(kind, tmp_path, program):
        assert turn_of == "user"
        assert lines[1:] == [("triage", "escalated"), ("security", "security has looked")]


@pytest.mark.parametrize("kind", STORES)
async def test_without_a_call_the_next_rule_decides(kind: str, tmp_path: Path) -> None:
    """A plain answer of triage goes to the generalist, and then the default target ends it."""

    async def program(store: Any) -> Any:
        return await _triage(store, ["nothing special"])

    for reason, lines in await run_on(kind, tmp_path, program):
        assert reason == "triage_complete"
        assert lines[1:] == [("triage", "nothing special"), ("general", "general has looked")]


async def both_ways(store: Any) -> str:
    """The graph sends `escalate` to the generalist, the tool itself to security."""
    async with await Hub.open(store) as hub:
        hc = HubClient(LocalLink(hub), hub=hub)
        user = await hc.register_human(Passport(name="user"))
        agent = _triage_agent([call("escalate"), "go"])
        triage = await hc.register(agent, Passport(name="triage"), Resume(), attach_plugin=False)
        security, general = [
            await hc.register(
                Agent(name, config=TestConfig(name)),
                Passport(name=name),
                Resume(),
                attach_plugin=False,
            )
            for name in ("security", "general")
        ]
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[
                Transition(when=ToolCalled("escalate"), then=AgentTarget(general.agent_id)),
                Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(triage.agent_id)),
            ],
            default_target=TerminateTarget(reason="done"),
        )
        channel = await user.open(
            type="workflow",
            target=["triage", "security", "general"],
            knobs={"graph": graph.to_dict()},
        )
        await channel.send("Ticket")
        await user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=closed, timeout=60
        )
        assert security.agent_id != general.agent_id
        return (await told(hub, channel.channel_id))[-1][0]


@pytest.mark.parametrize("kind", STORES)
async def test_the_typed_handoff_wins_over_the_rule(kind: str, tmp_path: Path) -> None:
    """Where both are set, the value that the tool returned decides."""
    assert set(await run_on(kind, tmp_path, both_ways)) == {"security"}
