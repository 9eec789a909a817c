"""A feedback loop: drafter and reviewer until a tool sets `done`, or the limit is reached.

The participants are plain functions; an agent of any framework could stand in their place.

    python examples/network_feedback_loop.py
"""

from __future__ import annotations

import asyncio

import agent_adapter as aa
from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    AgentTarget,
    ContextEquals,
    FromSpeaker,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    TerminateTarget,
    Transition,
    TransitionGraph,
    Turn,
)
from agent_adapter.network.workflow_helpers import set_context


@aa.tool
async def approve(reason: str, channel: aa.ChannelInject) -> str:
    """Mark the draft approved; the graph then ends the channel."""
    if channel is None:
        return "no channel"
    await set_context(channel, "done", True)
    return f"approved: {reason}"


async def drafter(turn: Turn) -> str:
    """Write a shorter draft each time."""
    revisions: int = turn.state().turn_count // 2
    return "Tides follow the moon, " * max(1, 3 - revisions)


async def reviewer(turn: Turn) -> str:
    """Approve what is short enough."""
    if len(turn.input_text) > 50:
        return "Too long."
    # A call in a turn runs at most once, even if the round has to be run again.
    return str(await turn.call(approve, reason="short"))


async def main() -> None:
    """Run the loop and print how it went."""
    async with await Hub.open("memory://") as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        draft = await hc.register(drafter, Passport(name="drafter"), attach_plugin=False)
        review = await hc.register(reviewer, Passport(name="reviewer"), attach_plugin=False)
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[
                # First, because the rules below match at every turn.
                Transition(
                    when=ContextEquals("done", value=True), then=TerminateTarget("approved")
                ),
                Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(draft.agent_id)),
                Transition(when=FromSpeaker(draft.agent_id), then=AgentTarget(review.agent_id)),
                Transition(when=FromSpeaker(review.agent_id), then=AgentTarget(draft.agent_id)),
            ],
            default_target=TerminateTarget("max_iterations"),
            max_turns=10,
        )
        channel = await user.open(
            type="workflow", target=["drafter", "reviewer"], knobs={"graph": graph.to_dict()}
        )
        await channel.send("Write about tides.")
        end = await user.wait_for_channel_event(
            channel_id=channel.channel_id,
            predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED,
            timeout=60,
        )
        for envelope in await hub.read_wal(channel.channel_id):
            if "body" in envelope.event_data:
                print(f"{hub.name_for(envelope.sender_id)}: {envelope.event_data['body']}")
        print(f"closed: {end.event_data['reason']}")


if __name__ == "__main__":
    asyncio.run(main())
