"""The tools that an agent has from its network answer a model as AG2's do."""

from __future__ import annotations

import importlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.events import ToolCallEvent, ToolResultsEvent
from ag2.knowledge import MemoryKnowledgeStore
from ag2.testing import TestConfig

pytestmark = pytest.mark.anyio

TIMES = {"when", "created_at", "expires_at", "closed_at"}


class Caller(TestConfig):
    """A model that makes the call it is told to make, and keeps what it reads of it."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self.turns: tuple[Any, ...] = ("done",)
        self.read: list[Any] = []

    def create(self) -> Any:
        """The model of one ask."""
        inner = TestConfig(*self.turns).create()

        async def client(messages: Any, context: Any, **options: Any) -> Any:
            for message in messages:
                if isinstance(message, ToolResultsEvent):
                    self.read = [part for item in message.results for part in item.result.parts]
            return await inner(messages, context, **options)

        return client


class House:
    """A hub of either library with ann, who calls tools in plain asks, and bob, who answers."""

    def __init__(self, net: Any, hub: Any) -> None:
        self.net, self.hub = net, hub
        self.model = Caller()
        self.agent = Agent("ann", config=self.model)
        self.ann: Any = None

    async def fill(self) -> None:
        """Register both."""
        net = self.net
        cost = net.CostProfile(input_per_mtok=1.0, output_per_mtok=2.0, latency_tier="fast")
        self.ann = await self.hub.register(self.agent, resume=net.Resume(summary="asks"))
        await self.hub.register(
            Agent("bob", config=TestConfig("Soup of the day.")),
            net.Passport(name="bob", owner="kitchen", provider="test", model="m", cost=cost),
            net.Resume(claimed_capabilities=["cook"], domains=["food"], summary="cooks soup"),
        )

    async def use(self, tool: str, **arguments: Any) -> Any:
        """What the model reads of its call, without ids and times."""
        self.model.turns = (ToolCallEvent(tool, arguments=json.dumps(arguments)), "done")
        self.model.read = []
        await self.agent.ask("go")
        [part] = self.model.read
        return self.plain(part.data if hasattr(part, "data") else part.content)

    async def asked(self) -> str:
        """A channel in which ann has asked and bob has answered, which has ended it."""
        channel = await self.ann.open(type="consulting", target="bob")
        await channel.send("Is there SOUP today?")
        await self.ann.wait_for_channel_event(
            channel_id=channel.channel_id,
            predicate=lambda item: item.event_type == self.net.EV_CHANNEL_CLOSED,
            timeout=60,
        )
        found: str = channel.channel_id
        return found

    def plain(self, value: Any, key: str = "") -> Any:
        """The value with names in the place of ids, and a mark in the place of times."""
        if isinstance(value, dict):
            return {name: self.plain(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item, key) for item in value]
        if key in TIMES:
            return value is not None and "time"
        if key in ("channel_id", "envelope_id", "seed_envelope_id"):
            return "id"
        names = {id: name for name, id in self.hub.name_to_id_map().items()}
        return names.get(value, value) if isinstance(value, str) else value


Program = Callable[[House], Awaitable[Any]]


async def find(house: House) -> Any:
    """Everybody else, and those of a capability."""
    return [
        await house.use("peers", action="find"),
        await house.use("peers", action="find", capability="cook", sort_by="cost"),
        await house.use("peers", action="find", query="soup", sort_by="track_record"),
        await house.use("peers", action="find", capability="fly"),
    ]


async def describe(house: House) -> Any:
    """One of them, with the page made of its résumé."""
    return await house.use("peers", action="describe", name="bob")


async def search(house: House) -> Any:
    """Words in any case, the oldest first, and no more than asked for."""
    id = await house.asked()
    return [
        await house.use("context", action="search", query="soup", channel_id=id),
        await house.use("context", action="search", query="soup", channel_id=id, limit=1),
        await house.use("context", action="search", query="fish", channel_id=id),
    ]


async def quote(house: House) -> Any:
    """The last words of one speaker."""
    id = await house.asked()
    return await house.use("context", action="quote", speaker="bob", channel_id=id)


async def open_one(house: House) -> Any:
    """`target` may be one name, or a list; with a message, and without."""
    talk = {"action": "open", "type": "conversation"}
    return [
        await house.use("channels", **talk, target="bob"),
        await house.use("channels", **talk, target=["bob"], intent="lunch", ttl="30m"),
        await house.use(
            "channels", action="open", type="consulting", target="bob", message="soup?"
        ),
    ]


async def listed(house: House) -> Any:
    """Those that go on, and all."""
    await house.asked()
    return [
        await house.use("channels", action="list"),
        await house.use("channels", action="list", state="all"),
    ]


async def info(house: House) -> Any:
    """Everything about one."""
    id = await house.asked()
    return await house.use("channels", action="info", channel_id=id)


async def close(house: House) -> Any:
    """The end that it has now."""
    channel = await house.ann.open(type="conversation", target="bob")
    return await house.use("channels", action="close", channel_id=channel.channel_id)


async def delegate(house: House) -> Any:
    """The answer, as text."""
    return await house.use("delegate", target="bob", prompt="What is for lunch?")


async def _on(library: str, program: Program) -> Any:
    net = importlib.import_module(library)
    hub = await net.Hub.open(MemoryKnowledgeStore(), ttl_sweep_interval=0)
    try:
        house = House(net, hub)
        await house.fill()
        return await program(house)
    finally:
        await hub.close()


@pytest.mark.parametrize(
    "program",
    [find, describe, search, quote, open_one, listed, info, close, delegate],
    ids=lambda item: item.__name__,
)
async def test_a_model_reads_what_it_reads_in_ag2(program: Program) -> None:
    """N13: results of the network's tools have the shapes and values of AG2's."""
    assert await _on("agent_adapter.network", program) == await _on("ag2.network", program)
