"""The page's feedback loop with faults, to be run as a module with STORE and EFFECTS.

The reviewer's own tool writes a line to EFFECTS and ends its process by SIGKILL at its first call.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ag2 import Agent
from ag2.events import ToolCallEvent
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


def reviewer_of(enter: Callable[[], None], config: Any = None) -> Agent:
    """The page's reviewer; `enter` is what its tool does first."""
    script = TestConfig(
        ToolCallEvent("approve", arguments='{"reason": "clear"}'),
        ToolCallEvent("approve", arguments='{"reason": "clear"}'),
        "approved as it is",
        raise_tool_errors=False,
    )
    agent = Agent("reviewer", config=config or script)

    @agent.tool
    async def approve(reason: str, channel: ChannelInject) -> str:
        """Mark the draft approved."""
        enter()
        if channel is None:
            return "no channel"
        await set_context(channel, "approved", True)
        return f"approved: {reason}"

    return agent


def approving_once(enter: Callable[[], None]) -> Agent:
    """A reviewer whose model calls its tool once in a round."""
    script = TestConfig(
        ToolCallEvent("approve", arguments='{"reason": "clear"}'), "approved as it is"
    )
    return reviewer_of(enter, script)


async def joined(hub: Any, reviewer: Agent) -> tuple[HumanClient, Any, Any]:
    """The page's participants, registered with the hub."""
    link = LocalLink(hub)
    user_hc, drf_hc, rev_hc = (HubClient(link, hub=hub) for _ in range(3))
    user = await user_hc.register_human(Passport(name="user", kind="human"))
    drafter = await drf_hc.register(
        Agent("drafter", config=TestConfig("a draft")),
        Passport(name="drafter"),
        Resume(),
        attach_plugin=False,
    )
    member = await rev_hc.register(
        reviewer, Passport(name="reviewer"), Resume(), attach_plugin=False
    )
    return user, drafter, member


async def opened(user: HumanClient, drafter: Any, reviewer: Any) -> str:
    """The page's channel, with the brief."""
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
    return channel.channel_id


async def ended(user: HumanClient, channel_id: str) -> dict[str, Any]:
    """The data of the channel's closing event."""
    end = await user.wait_for_channel_event(
        channel_id=channel_id, predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED, timeout=60
    )
    return end.event_data


async def _die_in_the_tool(store: str, effects: Path) -> None:
    def enter() -> None:
        with effects.open("a") as file:
            file.write("entered\n")
            file.flush()
            os.fsync(file.fileno())
        os.kill(os.getpid(), signal.SIGKILL)

    hub = await Hub.open(store)
    user, drafter, reviewer = await joined(hub, approving_once(enter))
    await ended(user, await opened(user, drafter, reviewer))


if __name__ == "__main__":
    asyncio.run(_die_in_the_tool(sys.argv[1], Path(sys.argv[2])))
