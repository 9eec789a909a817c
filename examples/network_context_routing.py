"""Context-aware routing: triage notes a category, and rules on it choose the specialist.

python examples/network_context_routing.py
"""

from __future__ import annotations

import asyncio

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
    LocalLink,
    Passport,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.network.workflow_helpers import set_context


async def set_category(category: str, channel: ChannelInject) -> str:
    """Note which kind of request this is."""
    await set_context(channel, "category", category)
    return f"category is {category}"


def triage_for(category: str) -> Agent:
    """A triage agent whose model has made up its mind."""
    script = TestConfig(
        ToolCallEvent("set_category", arguments=f'{{"category": "{category}"}}'),
        f"A matter of {category}.",
    )
    return Agent("triage", config=script, tools=[set_category])


async def route(category: str) -> str:
    """Who answered a request of that category."""
    async with await Hub.open("memory://") as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        triage = await hc.register(triage_for(category), Passport(name="triage"))
        specialists = [
            await hc.register(lambda name=name: f"{name} here", Passport(name=name))
            for name in ("billing", "shipping")
        ]
        by_name = {client.name: client.agent_id for client in specialists}
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[
                # The way out comes first: the category stays set.
                *(
                    Transition(when=FromSpeaker(id), then=TerminateTarget("answered"))
                    for id in by_name.values()
                ),
                Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(triage.agent_id)),
                *(
                    Transition(when=ContextEquals("category", name), then=AgentTarget(id))
                    for name, id in by_name.items()
                ),
            ],
            default_target=TerminateTarget("unroutable"),
            max_turns=6,
        )
        channel = await user.open(
            type="workflow", target=["triage", *by_name], knobs={"graph": graph.to_dict()}
        )
        await channel.send("I have a question.")
        await user.wait_for_channel_event(
            channel_id=channel.channel_id,
            predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED,
            timeout=60,
        )
        said = [e for e in await hub.read_wal(channel.channel_id) if "body" in e.event_data]
        return str(said[-1].event_data["body"])


async def main() -> None:
    """One request of each category."""
    for category in ("billing", "shipping"):
        print(f"{category}: {await route(category)}")


if __name__ == "__main__":
    asyncio.run(main())
