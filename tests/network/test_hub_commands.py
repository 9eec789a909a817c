"""What another process asks for is done by the store's hub, once, and answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network.hub import commands
from agent_adapter.store import open_store
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


async def _two_people(at: Scene) -> Any:
    await at.person("ana")
    await at.person("bob")
    graph = TransitionGraph.round_robin(at.names("ana", "bob"))
    return await at.open("ana", ["bob"], graph)


async def _ask(store: Store, kind: str, **payload: Any) -> str:
    return await store.write(lambda tx: commands.queue(tx, kind, payload, by="test"))


async def _answer(store: Store, id: str) -> Any:
    return await store.read(lambda tx: commands.result(tx, id))


async def test_another_process_speaks_through_the_hub(tmp_path: Path) -> None:
    """The hub that serves the file posts what the other one queued."""
    path = tmp_path / "hub.db"
    served, other = open_store(path), open_store(path)
    async with scene(served) as at:
        channel = await _two_people(at)
        id = await _ask(other, "speak", channel_id=channel.channel_id, sender="ana", text="hi")
        await at.settle()
        assert await at.said(channel) == [("ana", "hi")]
        assert (await _answer(other, id))["state"] == "done"
    await served.aclose()
    await other.aclose()


async def test_a_command_that_breaks_a_rule_is_refused_with_the_reason() -> None:
    """Out of turn is out of turn, whoever asks."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _two_people(at)
        id = await _ask(store, "speak", channel_id=channel.channel_id, sender="bob", text="me!")
        await at.settle()
        answer = await _answer(store, id)
        assert answer["state"] == "refused"
        assert "expects ana" in answer["error"]


async def test_a_channel_can_be_closed_from_outside() -> None:
    """With a reason."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _two_people(at)
        await _ask(store, "close", channel_id=channel.channel_id, reason="enough")
        await at.settle()
        assert await at.reason(channel) == "enough"


async def test_a_command_is_done_once_though_the_hub_died_before_noting_it() -> None:
    """The message bears the command's id as its key."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _two_people(at)
        await _ask(store, "speak", channel_id=channel.channel_id, sender="ana", text="hi")
        row = (await store.read(commands.queued))[0]
        await commands.run(at.hub._channels, at.hub._identities, row)
        await at.settle()
        assert await at.said(channel) == [("ana", "hi")]


async def test_a_command_without_what_it_needs_is_refused() -> None:
    """The answer names the field."""
    store = MemoryStore()
    async with scene(store) as at:
        id = await _ask(store, "close")
        await at.settle()
        assert "channel_id" in (await _answer(store, id))["error"]


async def test_an_unknown_command_is_refused_when_it_is_queued() -> None:
    """The error lists what can be asked."""
    store = MemoryStore()
    with pytest.raises(ProtocolError, match="speak, close, fork"):
        await _ask(store, "explode")


async def test_an_invitation_can_be_answered_from_outside() -> None:
    """A person at another machine agrees."""
    import asyncio

    store = MemoryStore()
    async with scene(store) as at:
        await at.person("ana")
        await at.person("bob", auto_ack_invites=False)
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        opening = asyncio.create_task(at.open("ana", ["bob"], graph))
        while not await at.hub.list_channels():
            await asyncio.sleep(0)
        metadata = (await at.hub.list_channels())[0]
        await _ask(store, "ack", channel_id=metadata.channel_id, sender="bob")
        await at.settle()
        assert (await opening).state.value == "active"
