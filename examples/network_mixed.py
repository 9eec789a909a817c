"""One channel of four kinds: an AG2 agent, an Agno agent, a plain function and a person.

An order goes from the AG2 agent to a function that checks the stock, to an Agno agent that
charges the customer. Charging waits for a person's approval: the turn is parked meanwhile, and
goes on when the person has decided. Then the person takes the last turn.

    python examples/network_mixed.py
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from ag2 import Agent as Ag2Agent
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig
from agno.agent import Agent as AgnoAgent
from agno.models.base import Model
from agno.models.response import ModelResponse

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tools
from agent_adapter.integrations.agno import agno_functions
from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    EV_PACKET,
    AgentTarget,
    Envelope,
    FromSpeaker,
    Handoff,
    Hub,
    HubClient,
    HumanClient,
    LocalLink,
    Passport,
    TerminateTarget,
    Transition,
    TransitionGraph,
    Turn,
    TurnCountAtLeast,
)
from agent_adapter.store.base import Store

registry = aa.ToolRegistry()


@registry.tool(effects="read", targets=["ag2"])
def to_stock(order: str) -> Handoff:
    """Have the stock checked."""
    return Handoff("stock", f"order {order}")


@registry.tool(confirm=True, targets=["agno"])
def charge(customer: str, euros: int) -> str:
    """Charge a customer."""
    return f"charged {euros} euros to {customer}"


def build_executor(store: Store) -> aa.Executor:
    """Runs every tool of the channel; what a person must see waits in the store's inbox."""
    return aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)


async def stock(turn: Turn) -> Handoff:
    """A participant without a model."""
    return Handoff("till", "three lamps are there")


@dataclass
class Script(Model):
    """An Agno model that charges, then says so."""

    id: str = "script"
    turns: list[Any] = field(default_factory=list)

    async def ainvoke(self, *args: Any, **options: Any) -> ModelResponse:
        """The next turn of the round: a call while it has not been answered."""
        messages: list[Any] = options.get("messages") or list(args[0])
        if any(message.role == "tool" for message in messages):
            return ModelResponse(role="assistant", content="Charged; please confirm by mail.")
        arguments = json.dumps({"customer": "ann", "euros": 90})
        function = {"name": "charge", "arguments": arguments}
        call = {"id": "c1", "type": "function", "function": function}
        return ModelResponse(role="assistant", tool_calls=[call])

    def invoke(self, *args: Any, **options: Any) -> Any:
        """The round is async."""
        raise NotImplementedError

    invoke_stream = ainvoke_stream = invoke

    def _parse_provider_response(self, response: Any, **options: Any) -> ModelResponse:
        return response  # type: ignore[no-any-return]  # already Agno's own type

    _parse_provider_response_delta = _parse_provider_response


async def person(user: HumanClient, channel_id: str, inbox: aa.Inbox) -> str:
    """Approve what is asked, then answer the till; how the channel ended."""
    while not (waiting := await inbox.list()):  # noqa: ASYNC110  # an inbox is a page to look at
        await asyncio.sleep(0.01)
    print(f"waiting for approval: {waiting[0].tool}")
    await inbox.approve(waiting[0].id, reviewer="eve")

    def fits(envelope: Envelope) -> bool:
        return envelope.event_type == EV_PACKET and "confirm" in envelope.event_data["body"]

    await user.next_envelope(predicate=fits, timeout=60)
    await user.send(channel_id, "Mail is on its way.")
    end = await user.next_envelope(
        predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED, timeout=60
    )
    return str(end.event_data["reason"])


async def main() -> None:
    """Register the four, open the channel, and print what was said."""
    store = aa.open_store("memory://")
    executor = build_executor(store)
    desk = Ag2Agent(
        "desk",
        config=TestConfig(ToolCallEvent("to_stock", arguments='{"order": "3 lamps"}'), "An order."),
        tools=ag2_tools(registry, executor=executor),
    )
    till = AgnoAgent(
        model=Script(), tools=agno_functions(registry, executor=executor), telemetry=False
    )
    async with await Hub.open(store, executor=executor) as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        clients = [
            await hc.register(agent, Passport(name=name), attach_plugin=False)
            for name, agent in (("desk", desk), ("stock", stock), ("till", till))
        ]
        desk_id, _, till_id = (client.agent_id for client in clients)
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[
                # Handoffs lead from the desk over the stock to the till; then the person answers.
                Transition(when=TurnCountAtLeast(5), then=TerminateTarget("delivered")),
                Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(desk_id)),
                Transition(when=FromSpeaker(till_id), then=AgentTarget(user.agent_id)),
            ],
            default_target=TerminateTarget("lost"),
            max_turns=8,
        )
        channel = await user.open(
            type="workflow", target=["desk", "stock", "till"], knobs={"graph": graph.to_dict()}
        )
        await channel.send("Three lamps, please.")
        reason = await person(user, channel.channel_id, aa.Inbox(store))
        for envelope in await hub.read_wal(channel.channel_id):
            data = envelope.event_data
            said = data.get("text") or data.get("body") or data.get("routing", {}).get("reason")
            if said:
                print(f"{hub.name_for(envelope.sender_id)}: {said}")
        print(f"closed: {reason}")


if __name__ == "__main__":
    asyncio.run(main())
