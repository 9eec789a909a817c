"""A hub with plain functions as participants, on a clock that a test turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, Envelope
from agent_adapter.flow.graph import (
    AgentTarget,
    Always,
    FromSpeaker,
    RoundRobinTarget,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.network.clients.hub_client import HubClient
from agent_adapter.network.clients.human_client import HumanClient
from agent_adapter.network.clients.participant import Channel
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.local import LocalLink
from tests.stores import fresh_store

__all__ = [
    "AgentTarget",
    "Always",
    "FakeClock",
    "FromSpeaker",
    "RoundRobinTarget",
    "Scene",
    "TerminateTarget",
    "Transition",
    "TransitionGraph",
    "scene",
]


KIND: tuple[str, Path] = ("memory", Path())
"""The kind of store that a scene without one opens, and the folder of its file."""


class FakeClock:
    """Seconds since the epoch, as the test says."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.at += seconds


class Scene:
    """A hub, its clock, and participants by name."""

    def __init__(self, hub: Hub, clock: FakeClock, client: HubClient) -> None:
        self.hub = hub
        self.clock = clock
        self.client = client
        self.people: dict[str, HumanClient] = {}
        self.agents: dict[str, Any] = {}

    def id(self, name: str) -> str:
        """The id of a participant."""
        return self.hub.name_to_id_map()[name]

    def names(self, *names: str) -> list[str]:
        """Ids of several."""
        return [self.id(name) for name in names]

    async def agent(self, name: str, function: Callable[..., Any], **more: Any) -> Any:
        """Register a function."""
        client = await self.client.register(
            function, Passport(name=name), Resume(), attach_plugin=False, **more
        )
        self.agents[name] = client
        return client

    async def person(self, name: str, **more: Any) -> HumanClient:
        """Register a person."""
        client = await self.client.register_human(Passport(name=name, kind="human"), **more)
        self.people[name] = client
        return client

    async def open(self, opener: str, others: list[str], graph: Any, **knobs: Any) -> Channel:
        """Open a workflow channel; it may go on for ever."""
        client = self.people.get(opener) or self.agents[opener]
        data = graph.to_dict() if isinstance(graph, TransitionGraph) else graph
        channel: Channel = await client.open(
            type="workflow",
            target=self.names(*others),
            knobs={"graph": data, "unbounded": True, **knobs},
        )
        return channel

    async def settle(self) -> None:
        """Let everything that is due now happen."""
        await self.hub.poll()
        await self.hub.idle()

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, sweep, and let what is due happen."""
        self.clock.pass_by(seconds)
        await self.hub.run_expectations()
        await self.settle()

    async def log(self, channel: Channel | str) -> list[Envelope]:
        """The channel's log."""
        channel_id = channel if isinstance(channel, str) else channel.channel_id
        return await self.hub.read_wal(channel_id)

    async def events(self, channel: Channel | str) -> list[str]:
        """The kinds of its events, without `ag2.` and what belongs to opening it."""
        kinds = [item.event_type.removeprefix("ag2.") for item in await self.log(channel)]
        return [kind for kind in kinds if kind.split(".")[-1] not in ("invite", "ack", "opened")]

    async def said(self, channel: Channel | str) -> list[tuple[str, str]]:
        """Who said what."""
        return [
            (self.hub.name_for(item.sender_id), str(text))
            for item in await self.log(channel)
            if (text := item.event_data.get("text", item.event_data.get("body"))) is not None
        ]

    async def reason(self, channel: Channel | str) -> str | None:
        """Why the channel closed; `None` while it goes on."""
        for item in await self.log(channel):
            if item.event_type == EV_CHANNEL_CLOSED:
                return str(item.event_data["reason"])
        return None


@asynccontextmanager
async def scene(
    store: Any = None, *, clock: FakeClock | None = None, late_refusals: int = 0, **more: Any
) -> AsyncIterator[Scene]:
    """A hub whose sweepers are off, so that only the test lets time pass.

    At its end it has refused `late_refusals` operations after their first insert.
    """
    clock = clock or FakeClock()
    more = {"ttl_sweep_interval": 0, "expectation_sweep_interval": 0} | more
    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(fresh_store(*KIND, clock=clock))
        hub = await Hub.open(store, clock=clock, **more)
        client = HubClient(LocalLink(hub), hub=hub)
        try:
            yield Scene(hub, clock, client)
            assert hub.late_refusals == late_refusals
        finally:
            await client.close()
            await hub.close()
