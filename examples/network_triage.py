"""Triage with a handoff: a tool that returns `Handoff` decides who speaks next.

python examples/network_triage.py
"""

from __future__ import annotations

import asyncio

from ag2 import Agent
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    AgentTarget,
    FromSpeaker,
    Handoff,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)


def build_triage() -> Agent:
    """An agent that escalates; tools are attached before it is registered."""
    script = TestConfig(
        ToolCallEvent("escalate", arguments='{"reason": "log-ins from two countries"}'),
        "This looks like a break-in.",
    )
    triage_agent = Agent("triage", prompt="Route the ticket.", config=script)

    @triage_agent.tool
    async def escalate(reason: str = "") -> Handoff:
        """Escalate this ticket to the security reviewer."""
        return Handoff(target="security", reason=reason)  # the Passport name

    return triage_agent


async def main() -> None:
    """A ticket goes to triage, which hands it to security."""
    async with await Hub.open("memory://") as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        triage = await hc.register(
            build_triage(), Passport(name="triage"), Resume(), attach_plugin=False
        )
        security, general = [
            await hc.register(
                Agent(name, config=TestConfig(text)),
                Passport(name=name),
                Resume(),
                attach_plugin=False,
            )
            for name, text in (("security", "Account locked."), ("general", "Will do."))
        ]
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[
                Transition(when=ToolCalled("escalate"), then=AgentTarget(security.agent_id)),
                Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(triage.agent_id)),
                Transition(when=FromSpeaker(triage.agent_id), then=AgentTarget(general.agent_id)),
            ],
            default_target=TerminateTarget(reason="triage_complete"),
            max_turns=20,
        )
        channel = await user.open(
            type="workflow",
            target=["triage", "security", "general"],
            knobs={"graph": graph.to_dict()},
        )
        await channel.send("Somebody else is using my account.")
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
