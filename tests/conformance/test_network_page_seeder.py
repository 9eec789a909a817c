"""A person opens the channel, so that the first agent really thinks about the brief."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    AgentTarget,
    ChannelInject,
    ContextEquals,
    FromSpeaker,
    Hub,
    HubClient,
    HumanClient,
    LocalLink,
    Passport,
    Resume,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.network.workflow_helpers import set_context

from ._network import STORES, Rounds, call, run_on, told

pytestmark = pytest.mark.anyio


def _reviewer_agent() -> Agent:
    """Asks for a revision once, then approves."""
    agent = Agent(
        "reviewer", config=Rounds(["shorter, please"], [call("approve"), "approved as it is"])
    )

    @agent.tool
    async def approve(channel: ChannelInject) -> str:
        """Approves the draft."""
        if channel is None:
            return "no channel"
        await set_context(channel, "approved", True)
        return "approved"

    return agent


async def seeded(store: Any) -> tuple[Any, list[tuple[str, str]]]:
    """User, drafter, reviewer; revised until the reviewer approves."""
    hub = await Hub.open(store)
    link = LocalLink(hub)
    user_hc, drf_hc, rev_hc = (HubClient(link, hub=hub) for _ in range(3))

    user = await user_hc.register_human(Passport(name="user", kind="human"))
    assert isinstance(user, HumanClient)
    drafter = await drf_hc.register(
        Agent("drafter", config=Rounds(["a long draft"], ["a short draft"])),
        Passport(name="drafter"),
        Resume(),
        attach_plugin=False,
    )
    reviewer = await rev_hc.register(
        _reviewer_agent(), Passport(name="reviewer"), Resume(), attach_plugin=False
    )

    graph = TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            Transition(
                when=ContextEquals("approved", value=True), then=TerminateTarget("approved")
            ),
            Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(drafter.agent_id)),
            Transition(when=FromSpeaker(drafter.agent_id), then=AgentTarget(reviewer.agent_id)),
            Transition(when=FromSpeaker(reviewer.agent_id), then=AgentTarget(drafter.agent_id)),
        ],
        default_target=TerminateTarget("max_revisions"),
        max_turns=12,
    )

    channel = await user.open(
        type="workflow",
        target=[drafter.agent_id, reviewer.agent_id],
        knobs={"graph": graph.to_dict()},
    )
    await channel.send("Brief: tides in two lines")
    end = await user.next_envelope(
        predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED, timeout=60
    )
    lines = await told(hub, channel.channel_id)
    await hub.close()
    return end.event_data["reason"], lines


@pytest.mark.parametrize("kind", STORES)
async def test_a_person_seeds_the_channel(kind: str, tmp_path: Path) -> None:
    """The person's message is the person's turn; the drafter thinks about it first."""
    for reason, lines in await run_on(kind, tmp_path, seeded):
        assert reason == "approved"
        assert lines == [
            ("user", "Brief: tides in two lines"),
            ("drafter", "a long draft"),
            ("reviewer", "shorter, please"),
            ("drafter", "a short draft"),
            ("reviewer", "approved as it is"),
        ]


@pytest.mark.parametrize("kind", STORES)
async def test_register_refuses_people(kind: str, tmp_path: Path) -> None:
    """`register` points to `register_human` for a passport of a person."""

    async def program(store: Any) -> str:
        async with await Hub.open(store) as hub:
            hc = HubClient(LocalLink(hub), hub=hub)
            agent = Agent("user", config=TestConfig("hi"))
            with pytest.raises(ValueError, match="register_human") as refused:
                await hc.register(agent, Passport(name="user", kind="human"), Resume())
            return str(refused.value)

    assert all(await run_on(kind, tmp_path, program))


@pytest.mark.parametrize("kind", STORES)
async def test_without_a_seeder_the_first_agent_is_not_asked(kind: str, tmp_path: Path) -> None:
    """A throw-away first agent works as well: its model is never called for the kick-off."""

    async def program(store: Any) -> list[tuple[str, str]]:
        async with await Hub.open(store) as hub:
            hc = HubClient(LocalLink(hub), hub=hub)
            intake = await hc.register(
                Agent("intake", config=TestConfig(AssertionError("asked"))),
                Passport(name="intake"),
                Resume(),
                attach_plugin=False,
            )
            worker = await hc.register(
                Agent("worker", config=TestConfig("done")),
                Passport(name="worker"),
                Resume(),
                attach_plugin=False,
            )
            graph = TransitionGraph.sequence([intake.agent_id, worker.agent_id])
            channel = await intake.open(
                type="workflow", target=["worker"], knobs={"graph": graph.to_dict()}
            )
            await channel.send("Do it.")
            await intake.wait_for_channel_event(
                channel_id=channel.channel_id,
                predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED,
                timeout=60,
            )
            return await told(hub, channel.channel_id)

    for lines in await run_on(kind, tmp_path, program):
        assert lines == [("intake", "Do it."), ("worker", "done")]
