"""A program with an AG2 reviewer on a file; told so, it dies after the tool and before the answer.

Run as `python -m tests.network._ag2_life STORE BOOK [die]`; it prints why the channel ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ag2 import Agent
from ag2.events import BaseEvent, ToolCallEvent, ToolResultsEvent
from ag2.testing import TestConfig

from agent_adapter.network import (
    AgentTarget,
    ChannelInject,
    ChannelStateInject,
    ContextEquals,
    FromSpeaker,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.network.workflow_helpers import set_context


class Mortal(TestConfig):
    """Calls `approve`, and dies when it is shown the result."""

    def create(self) -> Any:
        """The model of one turn."""
        inner = super().create()

        async def client(messages: Sequence[BaseEvent], context: Any, **options: Any) -> Any:
            if any(isinstance(item, ToolResultsEvent) for item in messages):
                os.kill(os.getpid(), signal.SIGKILL)
            return await inner(messages, context, **options)

        return client


async def main(store: str, book: Path, *, die: bool) -> str:
    """Open the hub, start or go on with its channel, and wait for the end."""
    config = (Mortal if die else TestConfig)(
        ToolCallEvent("approve", arguments='{"reason": "clear"}'), "approved"
    )
    agent = Agent("reviewer", config=config)

    @agent.tool
    async def approve(reason: str, channel: ChannelInject, state: ChannelStateInject) -> str:
        """Approves, and counts how often."""
        with book.open("a") as lines:
            lines.write(f"{reason}\n")
        await set_context(channel, "counter", state.context_vars.get("counter", 0) + 1)
        await set_context(channel, "done", True)
        return "noted"

    async with await Hub.open(store) as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        reviewer = await hc.register(agent, Passport(name="reviewer"), attach_plugin=False)
        graph = TransitionGraph(
            user.agent_id,
            [
                Transition(ContextEquals("done", True), TerminateTarget("approved")),
                Transition(FromSpeaker(user.agent_id), AgentTarget(reviewer.agent_id)),
            ],
            TerminateTarget("lost"),
        )
        known = await hub.list_channels()
        if known:
            channel_id = known[0].channel_id
        else:
            channel = await user.open(
                type="workflow", target="reviewer", knobs={"graph": graph.to_dict()}
            )
            channel_id = channel.channel_id
            await channel.send("Please review.")
        end = await user.wait_for_channel_event(
            channel_id=channel_id, predicate=lambda e: "reason" in e.event_data, timeout=60
        )
        state = await hub.adapter_state(channel_id)
        return f"{end.event_data['reason']} {state.context_vars['counter']}"


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], Path(sys.argv[2]), die="die" in sys.argv)))
