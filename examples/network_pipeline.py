"""The smallest network: three AG2 agents in a row, each writing on from what the last one said.

The models are AG2's own scripted ones, so this runs without a key and without a network:

    python examples/network_pipeline.py
"""

from __future__ import annotations

import asyncio

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    AgentClient,
    Channel,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
    TransitionGraph,
)


async def talk(researcher: AgentClient, writer: AgentClient, editor: AgentClient) -> Channel:
    """The channel of the three, once it has ended."""
    graph = TransitionGraph.sequence([researcher.agent_id, writer.agent_id, editor.agent_id])
    channel = await researcher.open(
        type="workflow",
        target=[writer.agent_id, editor.agent_id],
        knobs={"graph": graph.to_dict()},
    )
    # This is the researcher's own turn: its model is not asked.
    await channel.send("Topic: how do tides work?")
    await researcher.wait_for_channel_event(
        channel_id=channel.channel_id,
        predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED,
        timeout=60,
    )
    return channel


async def main() -> None:
    """Register three agents, let them talk, and print what was said."""
    hub = await Hub.open("memory://")  # a path or a database URL keeps it
    hc = HubClient(LocalLink(hub))

    researcher = await hc.register(
        Agent("researcher", prompt="Three facts as bullet points.", config=TestConfig("unused")),
        Passport(name="researcher"),
        Resume(),
        attach_plugin=False,
    )
    writer = await hc.register(
        Agent("writer", prompt="One paragraph.", config=TestConfig("The moon pulls the sea.")),
        Passport(name="writer"),
        Resume(),
        attach_plugin=False,
    )
    editor = await hc.register(
        Agent("editor", prompt="Tighten the text.", config=TestConfig("Moon pulls sea.")),
        Passport(name="editor"),
        Resume(),
        attach_plugin=False,
    )

    channel = await talk(researcher, writer, editor)
    for envelope in await hub.read_wal(channel.channel_id):
        said = envelope.event_data.get("text") or envelope.event_data.get("body")
        if said:
            print(f"{hub.name_for(envelope.sender_id)}: {said}")
    print(f"closed: {(await channel.info()).close_reason}")

    await hc.close()
    await hub.close()


if __name__ == "__main__":
    asyncio.run(main())
