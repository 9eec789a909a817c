"""The tools that a participant has from its network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.network import (
    Hub,
    HubClient,
    LocalLink,
    NetworkPlugin,
    Passport,
    Resume,
    TransitionGraph,
    Turn,
)

pytestmark = pytest.mark.anyio


class House:
    """A hub with ann, who has the tools, and bob, who answers."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.hc = HubClient(LocalLink(hub))
        self.ann: Any = None
        self.bob: Any = None

    async def fill(self) -> None:
        """Register both."""
        self.ann = await self.hc.register(lambda: "ann speaks", Passport(name="ann"))
        resume = Resume(claimed_capabilities=["cook"], summary="cooks soup")
        self.bob = await self.hc.register(self._bob, Passport(name="bob"), resume)

    async def _bob(self, text: str) -> str:
        return f"bob heard {text}"

    async def use(self, tool: str, **arguments: Any) -> Any:
        """Call one of ann's tools outside of any channel."""
        [spec] = [item for item in NetworkPlugin(self.ann).tools if item.name == tool]
        return await self.hub.executor.run_spec(spec, arguments)

    async def workflow(self, *names: str, opener: Any = None, **knobs: Any) -> Any:
        """A channel of these participants, one after the other."""
        ids = [(await self.hc.get_agent(name)).agent_id or "" for name in names]
        graph = TransitionGraph.sequence(ids)
        return await (opener or self.ann).open(
            type="workflow", target=list(names[1:]), knobs={"graph": graph.to_dict(), **knobs}
        )


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """The house, on a store in memory."""
    async with await Hub.open("memory://") as hub:
        found = House(hub)
        await found.fill()
        yield found


async def test_every_participant_has_five() -> None:
    """The plugin's tools are named as they are in AG2's network."""
    async with await Hub.open("memory://") as hub:
        house = House(hub)
        await house.fill()
        names = {spec.name for spec in house.ann.tools}
    assert names == {"peers", "channels", "tasks", "context", "delegate"}


async def test_without_the_plugin_there_are_none(house: House) -> None:
    """`attach_plugin=False` leaves an agent its own tools only."""
    client = await house.hc.register(lambda: "x", Passport(name="cy"), attach_plugin=False)
    assert not client.tools


async def test_find_peers(house: House) -> None:
    """`peers` lists others by what they can do, and leaves out the one who asks."""
    found = await house.use("peers", action="find")
    assert [item["name"] for item in found] == ["bob"]
    assert await house.use("peers", action="find", capability="fly") == []


async def test_describe_a_peer(house: House) -> None:
    """`peers` describes one participant, with a page made of its resume."""
    found = await house.use("peers", action="describe", name="bob")
    assert found["resume"]["claimed_capabilities"] == ["cook"]
    assert "cooks soup" in found["skill_md"]


async def test_a_stranger_is_an_error_to_read(house: House) -> None:
    """A name that is not there is a `ToolError` that says so."""
    with pytest.raises(aa.ToolError, match="zoe"):
        await house.use("peers", action="describe", name="zoe")


async def test_delegate(house: House) -> None:
    """`delegate` asks in a channel of its own and gives the answer."""
    assert await house.use("delegate", target="bob", prompt="soup?") == "bob heard soup?"
    [channel] = await house.hc.list_channels(agent_id=house.ann.agent_id, include_terminal=True)
    assert (channel.manifest.type, channel.state.value) == ("consulting", "closed")


async def test_delegate_to_nobody_names_the_others(house: House) -> None:
    """An unknown target is answered with who there is; oneself is refused."""
    with pytest.raises(aa.ToolError, match="Available targets: \\[bob\\]"):
        await house.use("delegate", target="zoe", prompt="?")
    with pytest.raises(aa.ToolError, match="is you"):
        await house.use("delegate", target="ann", prompt="?")


async def test_delegate_gives_up(house: House) -> None:
    """Without an answer in time the channel is closed and the model is told."""
    await house.hc.register_human(Passport(name="eve"))
    with pytest.raises(aa.ToolError, match=r"did not answer within 0\.01 s"):
        await house.use("delegate", target="eve", prompt="?", timeout=0.01)
    [channel] = await house.hc.list_channels(agent_id=house.ann.agent_id, include_terminal=True)
    assert channel.close_reason == "delegation_timeout"


async def test_delegate_inside_a_turn(house: House) -> None:
    """It posts nothing in the workflow whose turn is being taken."""

    async def asks(turn: Turn) -> str:
        return str(await turn.call(house.ann.tools[-1], target="bob", prompt="soup?"))

    user = await house.hc.register_human(Passport(name="user"))
    await house.hc.register(asks, Passport(name="cy"), attach_plugin=False)
    channel = await house.workflow("user", "cy", opener=user)
    await channel.send("hungry")
    await user.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: "reason" in e.event_data
    )
    log = await house.hub.read_wal(channel.channel_id)
    assert [e.event_data["body"] for e in log if "body" in e.event_data] == ["bob heard soup?"]


async def test_open_list_and_close(house: House) -> None:
    """`channels` opens one with a first message, lists it and closes it."""
    opened = await house.use(
        "channels", action="open", type="conversation", target=["bob"], message="hi"
    )
    listed = await house.use("channels", action="list")
    assert [item["channel_id"] for item in listed] == [opened["channel_id"]]
    closed = await house.use("channels", action="close", channel_id=opened["channel_id"])
    assert closed["state"] == "closed"


async def test_foreign_channels_are_not_found(house: House) -> None:
    """A channel that one is not in can be neither read nor closed."""
    eve = await house.hc.register_human(Passport(name="eve"))
    channel = await eve.open(type="conversation", target="bob")
    for action in ("info", "close"):
        with pytest.raises(aa.ToolError, match="no channel"):
            await house.use("channels", action=action, channel_id=channel.channel_id)


async def test_context_from_outside(house: House) -> None:
    """`context` reads, writes and deletes the variables of a channel one is in."""
    channel = await house.workflow("ann", "bob", context_vars={"a": 1})
    where = {"channel_id": channel.channel_id}
    await house.use("context", action="write", key="b", value=[2], **where)
    await house.use("context", action="delete", key="a", **where)
    assert await house.use("context", action="read", **where) == {"b": [2]}


async def test_search_and_quote(house: House) -> None:
    """`context` finds messages by their words and by their speaker."""
    channel = await house.workflow("ann", "bob")
    await channel.send("Soup for TEN")
    await house.ann.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: "reason" in e.event_data
    )
    where = {"channel_id": channel.channel_id}
    [found] = await house.use("context", action="search", query="for ten", limit=1, **where)
    [quoted] = await house.use("context", action="quote", speaker="bob", **where)
    assert (found["sender_id"], found["excerpt"]) == (house.ann.agent_id, "Soup for TEN")
    assert quoted["text"] == "bob heard [ann]: Soup for TEN"


async def test_tasks(house: House) -> None:
    """`tasks` starts a task, notes progress and ends it; an end is final."""
    task = await house.use("tasks", action="start", title="soup")
    which = {"task_id": task["task_id"]}
    await house.use("tasks", action="progress", note="water boils", **which)
    await house.use("tasks", action="complete", result="soup", **which)
    ended = await house.use("tasks", action="cancel", **which)
    assert (ended["state"], ended["notes"], ended["result"]) == (
        "completed",
        ["water boils"],
        "soup",
    )
    assert await house.use("tasks", action="list", state="running") == []


async def test_a_foreign_task_stays_as_it_is(house: House) -> None:
    """Only its owner may change a task."""
    task = await house.use("tasks", action="start", title="soup")
    house.ann = house.bob
    with pytest.raises(aa.ToolError, match="you have no task"):
        await house.use("tasks", action="complete", task_id=task["task_id"])


@pytest.mark.parametrize(
    ("tool", "arguments", "lacks"),
    [
        ("peers", {"action": "describe"}, "name"),
        ("channels", {"action": "open"}, "type"),
        ("channels", {"action": "info"}, "channel_id"),
        ("tasks", {"action": "start"}, "title"),
        ("tasks", {"action": "status"}, "task_id"),
        ("context", {"action": "read"}, "channel_id"),
    ],
)
async def test_what_is_missing_is_named(
    tool: str, arguments: dict[str, Any], lacks: str, house: House
) -> None:
    """An action without what it needs says what that is."""
    with pytest.raises(aa.ToolError, match=f"`{lacks}`"):
        await house.use(tool, **arguments)
