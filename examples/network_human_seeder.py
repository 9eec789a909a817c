"""A person opens the channel, so that the drafter is really asked about the brief.

python examples/network_human_seeder.py
"""

from __future__ import annotations

import asyncio

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    EV_PACKET,
    AgentTarget,
    Envelope,
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


async def brief(user: HumanClient, others: list[str], graph: TransitionGraph) -> str:
    """Open the channel as the person, say what is wanted, and wait for the end."""
    channel = await user.open(type="workflow", target=others, knobs={"graph": graph.to_dict()})
    await channel.send("Brief: tides, one line.")
    end = await user.next_envelope(
        predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED, timeout=60
    )
    return str(end.event_data["reason"])


async def main() -> None:
    """The user's brief goes to the drafter, the draft to the reviewer, and that is it."""
    async with await Hub.open("memory://") as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user", kind="human"))
        drafter, reviewer = [
            await hc.register(
                Agent(name, config=TestConfig(text)),
                Passport(name=name),
                Resume(),
                attach_plugin=False,
            )
            for name, text in (("drafter", "Tides: the moon's doing."), ("reviewer", "Good."))
        ]
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[
                Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(drafter.agent_id)),
                Transition(when=FromSpeaker(drafter.agent_id), then=AgentTarget(reviewer.agent_id)),
            ],
            default_target=TerminateTarget("reviewed"),
        )

        async def show(envelope: Envelope) -> None:
            """Print what the agents say as it arrives."""
            if envelope.event_type == EV_PACKET:
                print(f"{hub.name_for(envelope.sender_id)}: {envelope.event_data['body']}")

        user.on_envelope(show)
        print(f"closed: {await brief(user, ['drafter', 'reviewer'], graph)}")


if __name__ == "__main__":
    asyncio.run(main())
