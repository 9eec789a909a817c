"""The feedback loop: drafter and reviewer until the reviewer approves, or the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    AgentTarget,
    ChannelInject,
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
from agent_adapter.network.workflow_helpers import set_context

from ._network import STORES, Rounds, call, closed, run_on, told

pytestmark = pytest.mark.anyio

REVISE = ["once more"]
APPROVE = [call("approve", '{"reason": "clear"}'), "that is it"]


async def _loop(store: Any, *rounds: list[Any], max_turns: int = 10) -> Any:
    """Why the channel ended, and how many turns it took."""
    hub = await Hub.open(store)
    hc = HubClient(LocalLink(hub), hub=hub)
    reviewer_agent = Agent("reviewer", config=Rounds(*rounds))

    @reviewer_agent.tool
    async def approve(reason: str, channel: ChannelInject) -> str:
        """Approves the draft, which ends the channel."""
        if channel is None:
            return "no channel"
        await set_context(channel, "done", True)
        return f"approved: {reason}"

    intake = await hc.register(
        Agent("intake", config=TestConfig()), Passport(name="intake"), Resume(), attach_plugin=False
    )
    drafter = await hc.register(
        Agent("drafter", config=TestConfig("a draft")),
        Passport(name="drafter"),
        Resume(),
        attach_plugin=False,
    )
    reviewer = await hc.register(
        reviewer_agent, Passport(name="reviewer"), Resume(), attach_plugin=False
    )
    graph = TransitionGraph(
        initial_speaker=intake.agent_id,
        transitions=[
            Transition(when=ContextEquals("done", value=True), then=TerminateTarget("approved")),
            Transition(when=FromSpeaker(intake.agent_id), then=AgentTarget(drafter.agent_id)),
            Transition(when=FromSpeaker(drafter.agent_id), then=AgentTarget(reviewer.agent_id)),
            Transition(when=FromSpeaker(reviewer.agent_id), then=AgentTarget(drafter.agent_id)),
        ],
        default_target=TerminateTarget("max_iterations"),
        max_turns=max_turns,
    )
    channel = await intake.open(
        type="workflow",
        target=[drafter.agent_id, reviewer.agent_id],
        knobs={"graph": graph.to_dict()},
    )
    await channel.send("Write about tides.")
    end = await intake.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=closed, timeout=60.0
    )
    lines = await told(hub, channel.channel_id)
    await hub.close()
    return end.event_data["reason"], len(lines)


@pytest.mark.parametrize("kind", STORES)
async def test_the_reviewer_approves(kind: str, tmp_path: Path) -> None:
    """The approval of a turn ends the channel with that very turn."""

    async def program(store: Any) -> Any:
        return await _loop(store, REVISE, REVISE, APPROVE)

    assert set(await run_on(kind, tmp_path, program)) == {("approved", 7)}


@pytest.mark.parametrize("kind", STORES)
async def test_nobody_approves(kind: str, tmp_path: Path) -> None:
    """The limit of turns ends the loop; the default target is never reached."""

    async def program(store: Any) -> Any:
        return await _loop(store, REVISE)

    assert set(await run_on(kind, tmp_path, program)) == {("max_turns", 10)}
