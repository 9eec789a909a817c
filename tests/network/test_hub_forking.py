"""Going back: a fork has the same past and its own future; a replay proves the state."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import NotFoundError, ProtocolError
from agent_adapter.flow.envelope import EV_CONTEXT_SET, EV_PACKET
from agent_adapter.network.hub import commands
from agent_adapter.store.keys import conversation_key
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


async def _three(at: Scene, second: Any = None, third: Any = None) -> Any:
    await at.person("user")
    await at.agent("first", second or (lambda text: "one"))
    await at.agent("second", third or (lambda text: "two"))
    graph = TransitionGraph.sequence(at.names("user", "first", "second"))
    return await at.open("user", ["first", "second"], graph, context_vars={"n": 0})


async def _packet(at: Scene, channel: Any, sender: str) -> str:
    return next(
        item.envelope_id
        for item in await at.log(channel)
        if item.event_type == EV_PACKET and item.sender_id == at.id(sender)
    )


async def test_a_fork_has_the_same_past() -> None:
    """Up to and with the envelope that is named."""
    async with scene() as at:
        channel = await _three(at)
        await channel.send("go")
        await at.settle()
        made = await at.hub.fork(channel.channel_id, at=await _packet(at, channel, "first"))
        assert await at.said(made) == [("user", "go"), ("first", "one")]
        assert (await at.hub.get_channel(made)).parent_channel_id == channel.channel_id


async def test_a_fork_waits_until_it_is_resumed_and_then_has_its_own_future() -> None:
    """The original stays as it was."""
    answers = iter(["two", "another two"])
    async with scene() as at:
        channel = await _three(at, third=lambda text: next(answers))
        await channel.send("go")
        await at.settle()
        made = await at.hub.fork(channel.channel_id, at=await _packet(at, channel, "first"))
        await at.settle()
        assert len(await at.said(made)) == 2
        await at.hub.resume_channel(made)
        await at.settle()
        assert (await at.said(made))[-1] == ("second", "another two")
        assert (await at.said(channel))[-1] == ("second", "two")
        assert await at.reason(made) == "sequence_complete"


async def test_a_fork_copies_variables_and_taint_and_no_deadlines() -> None:
    """What was known there is known here; nobody is late for a copy."""

    async def first(turn: Any) -> str:
        await turn.channel.send("", event_type=EV_CONTEXT_SET, event_data={"set": {"n": 1}})
        return "one"

    store = MemoryStore()
    async with scene(store) as at:
        channel = await _three(at, first)
        thread = conversation_key("", channel.channel_id)
        row = {"scope": thread, "label": "web", "at": 1.0}
        await store.write(lambda tx: tx.insert("taints", row))
        await channel.send("go")
        await at.settle()
        made = await at.hub.fork(channel.channel_id, at=await _packet(at, channel, "first"))
        assert (await at.hub.adapter_state(made)).context_vars == {"n": 1}
        taints = await store.read(
            lambda tx: tx.select("taints", {"scope": conversation_key("", made)})
        )
        assert [item["label"] for item in taints] == ["web"]
        await at.pass_by(700)
        assert await at.reason(made) is None


async def test_a_fork_lists_the_writes_that_it_does_not_undo() -> None:
    """Those of turns after the point; those before it belong to both."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="write")
    def book(what: str) -> str:
        """Book something."""
        return f"booked {what}"

    def booking(what: str) -> Any:
        async def participant(turn: Any) -> str:
            return str(await turn.call(registry.get("book"), what=what))

        return participant

    async with scene() as at:
        channel = await _three(at, booking("a room"), booking("a flight"))
        await channel.send("go")
        await at.settle()
        point = await _packet(at, channel, "first")
        made = await at.hub.fork(channel.channel_id, at=point)
        writes = await at.hub.writes_after(channel.channel_id, point)
        assert [item["tool"] for item in writes] == ["book"]
        audited = [r for r in await at.hub.audit_log.read_all() if r["kind"] == "channel_forked"]
        assert audited[0]["channel_id"] == made
        assert audited[0]["writes"] == writes


async def test_a_fork_at_the_end_or_at_a_stranger_is_refused() -> None:
    """There is nothing to go on with."""
    async with scene() as at:
        channel = await _three(at)
        await channel.send("go")
        await at.settle()
        last = (await at.log(channel))[-1].envelope_id
        with pytest.raises(ProtocolError, match="the channel's end"):
            await at.hub.fork(channel.channel_id, at=last)
        with pytest.raises(NotFoundError, match="no envelope 'env_x'"):
            await at.hub.fork(channel.channel_id, at="env_x")


async def test_a_fork_asked_for_by_a_command_is_made_once() -> None:
    """A hub that dies before it has noted it makes no second one."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _three(at)
        await channel.send("go")
        await at.settle()
        asked = {"channel_id": channel.channel_id, "at": await _packet(at, channel, "first")}
        await store.write(lambda tx: commands.queue(tx, "fork", asked))
        row = (await store.read(commands.queued))[0]
        await commands.run(at.hub._channels, at.hub._identities, row)
        await at.settle()
        assert len(await at.hub.list_channels()) == 2


async def test_a_replay_proves_the_stored_state() -> None:
    """Every kind of entry folded again gives what is kept."""
    async with scene() as at:
        channel = await _three(at)
        await channel.send("go")
        await at.settle()
        report = await at.hub.replay(channel.channel_id)
        assert report.matches and report.differences == ()
        assert report.envelopes == len(await at.log(channel))


async def test_a_replay_says_what_does_not_fit() -> None:
    """A state that was changed behind the log's back is found."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _three(at)
        await channel.send("go")
        await at.settle()

        def meddle(tx: Any) -> None:
            row = tx.get("channels", channel.channel_id)
            folded = row["folded"].replace('"turn_count":3', '"turn_count":2')
            tx.update("channels", {"channel_id": channel.channel_id}, {"folded": folded})

        await store.write(meddle)
        report = await at.hub.replay(channel.channel_id)
        assert report.differences == ("the state's turn_count is 2, the log gives 3",)
