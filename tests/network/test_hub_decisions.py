"""What was decided about turns and channels where AG2 leaves it open; each test names its rule."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import GuardrailBlocked, NotFoundError, ProtocolError, StaleTurn
from agent_adapter.core.routing import Handoff
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_OPENED,
    EV_CONTEXT_SET,
    EV_TEXT,
    Envelope,
)
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.workflow_helpers import set_context
from agent_adapter.store import open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, scene

pytestmark = pytest.mark.anyio


async def _two_people(at: Scene, **knobs: Any) -> Any:
    await at.person("ana")
    await at.person("bob")
    graph = TransitionGraph.round_robin(at.names("ana", "bob"))
    return await at.open("ana", ["bob"], graph, **knobs)


async def _with(at: Scene, function: Any, **knobs: Any) -> Any:
    await at.person("user")
    await at.agent("worker", function)
    graph = TransitionGraph.sequence(at.names("user", "worker"))
    return await at.open("user", ["worker"], graph, **knobs)


async def test_rule_16_the_end_is_written_with_the_turn_that_causes_it() -> None:
    """Nobody can speak between the last packet and the close."""
    async with scene() as at:
        channel = await _with(at, lambda text: "done")
        await channel.send("go")
        await at.settle()
        rows = await at.hub.store.read(
            lambda tx: tx.select("envelopes", {"channel_id": channel.channel_id}, order_by="seq")
        )
        assert rows[-1]["event_type"] == EV_CHANNEL_CLOSED
        with pytest.raises(ProtocolError, match="is closed \\(sequence_complete\\)"):
            await channel.send("one more thing")


async def test_rule_16_a_change_that_lost_the_race_is_refused_whole() -> None:
    """The channel's revision is compared when it is set: nothing of a stale change stays."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _two_people(at)
        from agent_adapter.network.channels import log

        def racing(tx: Any) -> Any:
            sneaky = _Sneaky(tx, channel.channel_id)
            said = Envelope(channel.channel_id, at.id("ana"), None, EV_TEXT, {"text": "hi"})
            return log.accept(sneaky, at.hub._hub_context, said)

        before = len(await at.log(channel))
        with pytest.raises(Exception, match="changed meanwhile"):
            await store.write(racing)
        assert len(await at.log(channel)) == before


class _Sneaky:
    """A transaction in which somebody else changes the channel after it was read."""

    def __init__(self, inner: Any, channel_id: str) -> None:
        self._inner = inner
        self._channel_id = channel_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def insert(self, table: str, row: Any) -> bool:
        """Insert, and move the channel on."""
        if table == "envelopes":
            self._inner.update("channels", {"channel_id": self._channel_id}, {"revision": 99})
        return bool(self._inner.insert(table, row))


async def test_rule_17_a_change_by_somebody_else_applies_at_once() -> None:
    """While the speaker's own waits for its packet."""
    order: list[Any] = []

    async def worker(turn: Any) -> str:
        await set_context(turn.channel, "mine", 1)
        hers = await at.people["user"].channel(turn.channel_id)
        await set_context(hers, "hers", 1)
        order.append((await at.hub.folded_state(turn.channel_id)).context_vars)
        return "done"

    async with scene() as at:
        channel = await _with(at, worker)
        await channel.send("go")
        await at.settle()
        assert order == [{"hers": 1}]
        state = await at.hub.folded_state(channel.channel_id)
        assert state.context_vars == {"hers": 1, "mine": 1}


async def test_rule_17_a_turns_channel_takes_no_text() -> None:
    """What the round returns is the turn's message."""
    errors: list[str] = []

    async def worker(turn: Any) -> str:
        try:
            await turn.channel.send("early")
        except ProtocolError as exc:
            errors.append(str(exc))
        return "done"

    async with scene() as at:
        channel = await _with(at, worker)
        await channel.send("go")
        await at.settle()
        assert "return the text instead" in errors[0]
        assert (await at.said(channel))[1:] == [("worker", "done")]


async def test_rule_17_a_close_by_a_tool_comes_after_the_packet() -> None:
    """The last word is heard, and the tool's reason stands."""

    async def worker(turn: Any) -> str:
        await turn.channel.close("seen enough")
        return "my last word"

    async with scene() as at:
        await at.person("user")
        await at.agent("worker", worker)
        graph = TransitionGraph.round_robin(at.names("user", "worker"))
        channel = await at.open("user", ["worker"], graph)
        await channel.send("go")
        await at.settle()
        assert await at.events(channel) == ["msg.text", "packet", "channel.closed"]
        assert await at.reason(channel) == "seen enough"


async def test_rule_18_a_turn_whose_write_is_in_doubt_is_parked_until_it_is_resolved() -> None:
    """A person says that it happened: the round goes on with that result."""
    from agent_adapter.store import doubt

    registry = aa.ToolRegistry()
    ran: list[int] = []

    @registry.tool(effects="write")
    async def book() -> str:
        """Book."""
        ran.append(1)
        raise OSError("the line broke")

    async def worker(turn: Any) -> str:
        try:
            return str(await turn.call(registry.get("book")))
        except aa.ToolFailed:
            return str(await turn.call(registry.get("book")))

    clock = FakeClock()
    store = MemoryStore(clock=clock)
    async with scene(store, clock=clock) as at:
        channel = await _with(at, worker)
        await channel.send("go")
        await at.settle()
        assert (await at.hub.pending_turns_for(at.id("worker")))[0].state == "parked"
        row = (await store.read(doubt.in_doubt))[0]
        result = ("json", b'"booked"')
        await store.write(
            lambda tx: doubt.resolve(
                tx, row["call_key"], reviewer="ana", happened=True, result=result
            )
        )
        await at.settle()
        assert ran == [1]
        assert (await at.said(channel))[-1] == ("worker", "booked")


async def test_rule_20_a_handoff_to_nobody_is_an_error_inside_the_round() -> None:
    """The participant reads who there is, and may choose again."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    def escalate(target: str) -> Handoff:
        """Escalate."""
        return Handoff(target)

    heard: list[str] = []

    async def worker(turn: Any) -> str:
        try:
            await turn.call(registry.get("escalate"), target="nobody")
        except GuardrailBlocked as exc:
            heard.append(str(exc))
        return "then not"

    async with scene() as at:
        channel = await _with(at, worker)
        await channel.send("go")
        await at.settle()
        assert "participants are user, worker" in heard[0]
        assert await at.reason(channel) == "sequence_complete"


async def test_rule_21_only_those_who_are_listed_may_change_a_key() -> None:
    """For everybody else it is refused, with the names."""
    async with scene() as at:
        channel = await _two_people(at, context_acl={"approved*": ["bob"]})
        with pytest.raises(ProtocolError, match="'ana' may not change 'approved'"):
            await set_context(channel, "approved", True)
        await set_context(await at.people["bob"].channel(channel.channel_id), "approved", True)
        assert (await at.hub.folded_state(channel.channel_id)).context_vars == {"approved": True}


async def test_rule_21_a_staged_change_is_held_to_the_same_list() -> None:
    """In the round, where the tool can read it."""

    async def worker(turn: Any) -> str:
        try:
            await set_context(turn.channel, "approved", True)
        except ProtocolError as exc:
            return str(exc)
        return "approved"

    async with scene() as at:
        channel = await _with(at, worker, context_acl={"approved": ["user"]})
        await channel.send("go")
        await at.settle()
        assert "may not change 'approved'" in (await at.said(channel))[-1][1]


async def test_rule_21_a_value_may_have_16_kb() -> None:
    """Larger things are kept elsewhere."""
    async with scene() as at:
        channel = await _two_people(at)
        with pytest.raises(ProtocolError, match="16384"):
            await set_context(channel, "page", "x" * 17_000)


async def test_rule_21_a_graph_is_stored_once() -> None:
    """Two channels of one graph share its row, and no folded state holds it."""
    async with scene() as at:
        await _two_people(at)
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        await at.open("ana", ["bob"], graph)
        store = at.hub.store
        assert await store.read(lambda tx: tx.count("graphs")) == 1
        rows = await store.read(lambda tx: tx.select("channels"))
        assert all("transitions" not in row["folded"] + row["knobs"] for row in rows)


async def test_rule_22_an_opener_who_is_not_first_sends_the_brief() -> None:
    """N12: the first speaker waits for the opener's text and answers it, whose turn it is not."""
    heard: list[str] = []

    async def worker(turn: Any) -> str:
        heard.append(turn.input_text)
        return "I begin"

    async with scene() as at:
        await at.person("user")
        await at.agent("worker", worker)
        graph = TransitionGraph.sequence(at.names("worker", "user"))
        channel = await at.open("user", ["worker"], graph)
        await at.settle()
        assert heard == []
        await channel.send("write about tides")
        await at.settle()
        assert heard == ["[user]: write about tides"]
        state = await at.hub.folded_state(channel.channel_id)
        assert state.turn_count == 1
        await channel.send("and I end")
        assert await at.reason(channel) == "sequence_complete"
        assert (await at.hub.replay(channel.channel_id)).matches


async def test_rule_22_there_is_one_brief() -> None:
    """A second text of the opener is out of turn, as any other."""
    async with scene() as at:
        await at.person("user")
        await at.person("worker")
        graph = TransitionGraph.sequence(at.names("worker", "user"))
        channel = await at.open("user", ["worker"], graph)
        await channel.send("write about tides")
        with pytest.raises(ProtocolError, match="expects worker"):
            await channel.send("and hurry")


async def test_rule_22_nobody_else_sends_the_brief() -> None:
    """A participant who neither opened the channel nor is expected may not begin."""
    async with scene() as at:
        for name in ("user", "worker", "third"):
            await at.person(name)
        graph = TransitionGraph.sequence(at.names("worker", "user"))
        channel = await at.open("user", ["worker", "third"], graph)
        with pytest.raises(ProtocolError, match="expects worker"):
            await at.people["third"].send(channel.channel_id, "hello")


async def test_rule_22_the_first_speakers_clock_starts_with_the_brief() -> None:
    """What the opener took to write it is not the speaker's silence."""
    async with scene() as at:
        await at.person("user")
        await at.person("worker")
        graph = TransitionGraph.sequence(at.names("worker", "user"))
        channel = await at.open("user", ["worker"], graph)
        await at.pass_by(100)
        await channel.send("write about tides")
        await at.pass_by(100)
        assert "expectation.violated" not in await at.events(channel)
        await at.pass_by(21)
        assert "expectation.violated" in await at.events(channel)


async def test_rule_23_a_known_name_that_is_not_connected_keeps_its_id() -> None:
    """A program can run twice on one store."""
    store = MemoryStore()
    async with scene(store) as at:
        first = (await at.agent("worker", lambda text: "1")).agent_id
    async with scene(store) as at:
        assert (await at.agent("worker", lambda text: "2")).agent_id == first


async def test_rule_23_a_connected_name_is_refused() -> None:
    """Two programs cannot be one participant."""
    async with scene() as at:
        await at.agent("worker", lambda text: "1")
        with pytest.raises(ProtocolError, match="registered and connected"):
            await at.agent("worker", lambda text: "2")


async def test_rule_24_a_sweeper_that_is_0_is_off_and_others_run() -> None:
    """Only what was asked for is a task."""
    async with await Hub.open(MemoryStore(), ttl_sweep_interval=0) as hub:
        assert set(hub._scheduler._sweepers) == {
            "expectations",
            "observations",
            "poll",
            "retention",
        }


async def test_rule_24_a_hub_takes_a_path_and_keeps_what_it_held(tmp_path: Path) -> None:
    """The same file has the same participants."""
    async with await Hub.open(tmp_path / "hub.db") as hub:
        await hub.register_identity(Passport(name="ana"), Resume())
    async with await Hub.open(f"sqlite:///{tmp_path / 'hub.db'}") as hub:
        assert hub.find_agent_id("ana") is not None


async def test_rule_24_something_that_is_no_store_is_refused() -> None:
    """The error names what to pass instead."""
    with pytest.raises(TypeError, match="open_store"):
        await Hub.open(object())


async def test_rule_24_ag2s_memory_store_keeps_a_store_of_ours() -> None:
    """Opened twice on one object, it has what was there."""
    knowledge = pytest.importorskip("ag2.knowledge")
    given = knowledge.MemoryKnowledgeStore()
    async with await Hub.open(given) as hub:
        await hub.register_identity(Passport(name="ana"), Resume())
    async with await Hub.open(given) as hub:
        assert hub.find_agent_id("ana") is not None


async def test_rule_26_a_rounds_calls_have_the_turn_as_run_and_the_channel_as_thread() -> None:
    """In the ledger, too."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="write")
    def note(ctx: aa.ToolContext) -> str:
        """Note."""
        return f"{ctx.run_id} {ctx.thread_id} {ctx.attempt}"

    async def worker(turn: Any) -> str:
        said = await turn.call(registry.get("note"))
        assert said == f"{turn.turn_id} {turn.channel_id} 1"
        return "noted"

    async with scene() as at:
        channel = await _with(at, worker)
        await channel.send("go")
        await at.settle()
        assert (await at.said(channel))[-1] == ("worker", "noted")
        rows = await at.hub.store.read(lambda tx: tx.select("calls"))
        assert [row["thread_id"] for row in rows] == [channel.channel_id]


async def test_rule_28_an_answer_to_a_turn_that_has_passed_is_stale() -> None:
    """A person who answers late is told so."""
    async with scene() as at:
        channel = await _two_people(at)
        turn = (await at.people["ana"].pending_turns())[0]
        await at.people["ana"].send(channel.channel_id, "one", turn_id=turn.turn_id)
        await at.people["bob"].send(channel.channel_id, "two")
        with pytest.raises(StaleTurn):
            await at.people["ana"].send(channel.channel_id, "again", turn_id=turn.turn_id)


async def test_rule_29_what_is_not_for_a_speaker_is_not_in_its_window() -> None:
    """Filtered where the log is read, before any view."""
    async with scene() as at:
        for name in ("ana", "bob", "eve"):
            await at.person(name)
        graph = TransitionGraph.round_robin(at.names("ana", "bob", "eve"))
        channel = await at.open("ana", ["bob", "eve"], graph)
        await channel.send("for all")
        bob = at.people["bob"]
        await bob.send(channel.channel_id, "for ana alone", audience=at.names("ana"))

        async def seen(name: str) -> list[Any]:
            found = await at.hub.window(channel.channel_id, at.id(name), 10)
            return [item.event_data["text"] for item in found]

        assert await seen("eve") == ["for all"]
        assert await seen("ana") == await seen("bob") == ["for all", "for ana alone"]


async def test_rule_29_a_message_reaches_its_audience_and_nobody_else() -> None:
    """Delivery looks at it as well."""
    async with scene() as at:
        for name in ("ana", "bob", "eve"):
            await at.person(name)
        graph = TransitionGraph.round_robin(at.names("ana", "bob", "eve"))
        channel = await at.open("ana", ["bob", "eve"], graph)
        await channel.send("psst", audience=at.names("bob"))
        await at.hub.idle()

        def told(envelope: Envelope) -> bool:
            return envelope.event_type == EV_TEXT

        assert (await at.people["bob"].next_envelope(predicate=told, timeout=60)).event_data
        with pytest.raises(TimeoutError):
            await at.people["eve"].next_envelope(predicate=told, timeout=0.01)


@pytest.mark.parametrize("event", [EV_CHANNEL_CLOSED, EV_CHANNEL_OPENED])
async def test_nobody_but_the_hub_says_what_a_channel_is(event: str) -> None:
    """A forged end is refused, and nothing is written."""
    async with scene() as at:
        channel = await _two_people(at)
        before = len(await at.log(channel))
        forged = Envelope(channel.channel_id, at.id("ana"), None, event, {"reason": "mine"})
        with pytest.raises(ProtocolError, match="written by the hub alone"):
            await at.hub.post_envelope(forged)
        assert len(await at.log(channel)) == before


async def test_a_name_in_place_of_an_id_is_refused_as_such() -> None:
    """The error says what belongs there."""
    async with scene() as at:
        channel = await _two_people(at)
        with pytest.raises(ProtocolError, match="not the name"):
            await at.hub.post_envelope(
                Envelope(channel.channel_id, "ana", None, EV_TEXT, {"text": "hi"})
            )


async def test_an_oversized_envelope_is_refused_and_nothing_is_written() -> None:
    """With what it has and may have."""
    async with scene() as at:
        channel = await _two_people(at)
        before = len(await at.log(channel))
        with pytest.raises(ProtocolError, match="the limit is"):
            await channel.send("x" * 600_000)
        assert len(await at.log(channel)) == before
        assert (await at.hub.replay(channel.channel_id)).matches


async def test_a_declined_invitation_ends_the_channel() -> None:
    """`open` raises and names who declined."""
    async with scene() as at:
        await at.person("ana")
        bob = await at.person("bob", auto_ack_invites=False)

        async def decline(envelope: Envelope) -> None:
            if envelope.event_type.endswith("invite"):
                await bob.reject_invite(envelope)

        bob.on_envelope(decline)
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        with pytest.raises(ProtocolError, match="rejected_by:bob"):
            await at.open("ana", ["bob"], graph)


async def test_enough_acks_open_a_channel() -> None:
    """`required_acks=1` of two: the other may agree later."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        eve = await at.person("eve", auto_ack_invites=False)
        graph = TransitionGraph.round_robin(at.names("ana", "bob", "eve"))
        channel = await ana.open(
            type="workflow",
            target=["bob", "eve"],
            knobs={"graph": graph.to_dict(), "unbounded": True},
            required_acks=1,
        )
        assert (await channel.info()).pending_acks == [eve.agent_id]
        invite = next(e for e in await at.log(channel) if e.audience == [eve.agent_id])
        await eve.accept_invite(invite)
        assert (await channel.info()).pending_acks == []
        assert (await channel.info()).state is ChannelState.ACTIVE


async def test_a_cancelled_sender_leaves_nobody_uninformed(tmp_path: Path) -> None:
    """Whoever asked is gone; what was accepted is told, and the next turn is run."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        channel = await _with(at, lambda text: "heard")
        sending = asyncio.create_task(channel.send("go"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await at.settle()
        said = await at.said(channel)
        assert said in ([], [("user", "go"), ("worker", "heard")])
        assert (await at.hub.replay(channel.channel_id)).matches
    await store.aclose()


async def test_an_unknown_channel_is_not_found() -> None:
    """And leaves nothing behind in the hub."""
    async with scene() as at:
        ana = await at.person("ana")
        with pytest.raises(NotFoundError, match="no channel 'chn_x'"):
            await at.hub.post_envelope(
                Envelope("chn_x", ana.agent_id, None, EV_CONTEXT_SET, {"set": {}})
            )
        assert at.hub._service._locks == {}
