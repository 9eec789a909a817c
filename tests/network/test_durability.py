"""What a hub must never lose or repeat: the rows R1, R2, R13 and R14 of the durability rules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import NetworkError, ProtocolError, StaleTurn
from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, EV_TEXT, Envelope
from agent_adapter.network import Hub, HubClient, Passport, Turn, WebSocketLink, serve
from agent_adapter.network.adapters.conversation import ConversationAdapter
from agent_adapter.network.links.frames import Notify
from agent_adapter.network.links.remote_participant import RemoteParticipant, catch_up
from agent_adapter.store.memory import MemoryStore
from tests.network._frame_relay import frame_relay
from tests.network._relay import relay
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio

TABLES = ("channels", "channel_members", "envelopes", "turns", "expectations", "audit", "taints")


def is_text(envelope: Envelope) -> bool:
    """Whether it is a text."""
    return envelope.event_type == EV_TEXT


async def counts(hub: Hub) -> dict[str, int]:
    """The number of rows per table."""
    return await hub.store.read(lambda tx: {name: tx.count(name) for name in TABLES})


def paying(paid: list[int]) -> Any:
    """A write whose effects are counted in `paid`."""

    @aa.tool(effects="write")
    async def pay(number: int) -> int:
        """Pay one invoice."""
        paid.append(number)
        return number

    return pay


# --- R1: a far round ----------------------------------------------------------------------------


@pytest.mark.parametrize("loses", [False, True])
async def test_r1_a_far_round_cut_at_any_frame_pays_once(loses: bool) -> None:
    """R1: cut at each frame of a round, also at the one that ends it, its write happens once."""
    pytest.importorskip("websockets")
    paid: list[int] = []
    pay = paying(paid)

    async def bot(turn: Turn) -> str:
        return f"paid {await turn.call(pay, number=int(turn.input_text.split()[-1]))}"

    async with scene() as at, serve(at.hub, grace=20.0) as server, frame_relay(server.url) as wire:
        executor = aa.Executor(store=MemoryStore())
        async with HubClient(WebSocketLink(wire.url), executor=executor) as far:
            anna = await at.person("anna")
            await far.register(bot, Passport(name="bot"), attach_plugin=False)
            channel = await anna.open(type="conversation", target="bot")
            number = cuts = 0
            while wire.cuts == cuts:
                number, cuts = number + 1, wire.cuts + 1
                wire.arm(number, loses=loses)
                await channel.send(f"invoice {number}")
                heard = await anna.next_envelope(predicate=is_text, timeout=20)
                assert heard.event_data["text"] == f"paid {number}"
            await at.hub.idle()
        assert number > 6
        assert paid == list(range(1, number + 1))
        assert len(await at.said(channel)) == 2 * number


# --- R2: a superseded attempt -------------------------------------------------------------------


async def held_round(at: Scene, supersede: Any) -> tuple[list[int], list[Exception]]:
    """A round during which `supersede(turn)` happens before its write; what it paid, and errors."""
    paid: list[int] = []
    errors: list[Exception] = []
    pay = paying(paid)

    async def bot(turn: Turn) -> str:
        if turn.attempt == 1:
            await supersede(turn)
            try:
                await turn.call(pay, number=1)
            except StaleTurn as exc:
                errors.append(exc)
                raise
        return "done"

    await at.person("anna")
    await at.agent("bot", bot)
    channel = await at.people["anna"].open(type="conversation", target="bot")
    await channel.send("go")
    await at.hub.idle()
    return paid, errors


async def test_r2_a_round_whose_channel_was_closed_writes_nothing() -> None:
    """R2: the channel closes during the round; its write is refused as stale."""
    async with scene() as at:

        async def supersede(turn: Turn) -> None:
            await at.hub.close_channel(turn.channel_id, "enough")

        paid, [error] = await held_round(at, supersede)
    assert paid == []
    assert "dropped" in str(error)


async def test_r2_attempt_one_writes_nothing_once_attempt_two_has_begun() -> None:
    """R2: another attempt of the turn has begun; the write of the first is refused as stale."""
    async with scene() as at:

        async def supersede(turn: Turn) -> None:
            await at.hub.release_turn(turn.port.ref)  # type: ignore[attr-defined]  # a hub's port
            assert (await at.hub.start_turn(turn.turn_id)) is not None

        paid, [error] = await held_round(at, supersede)
    assert paid == []
    assert "at attempt 2" in str(error)


async def test_r2_a_participant_that_was_cut_off_and_replaced_writes_nothing() -> None:
    """R2: another process has taken the name; what the first one still runs is refused as stale."""
    pytest.importorskip("websockets")
    paid: list[int] = []
    pay = paying(paid)
    begun, replaced = asyncio.Event(), asyncio.Event()
    outcome: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def slow(turn: Turn) -> str:
        begun.set()
        await replaced.wait()
        try:
            await turn.call(pay, number=1)
        except Exception as exc:
            outcome.set_result(exc)
            raise
        return "late"

    async with scene() as at, serve(at.hub, grace=0.05) as server, relay(server.port) as wire:
        executor = aa.Executor(store=MemoryStore())
        async with HubClient(WebSocketLink(wire.url), executor=executor) as far:
            anna = await at.person("anna")
            bot = await far.register(slow, Passport(name="bot"), attach_plugin=False)
            channel = await anna.open(type="conversation", target="bot")
            await channel.send("go")
            await begun.wait()
            wire.closed = True
            wire.cut()
            while at.hub.is_connected(bot.agent_id):
                await asyncio.sleep(0.01)
            await at.agent("bot", lambda text: "answered elsewhere")
            answer = await anna.next_envelope(predicate=is_text, timeout=20)
            wire.closed = False
            replaced.set()
            error = await asyncio.wait_for(outcome, 20)
    assert answer.event_data["text"] == "answered elsewhere"
    assert isinstance(error, StaleTurn)
    assert paid == []


# --- R13: refused means unchanged ---------------------------------------------------------------


async def ended_channel(at: Scene) -> tuple[Any, str]:
    """A channel that has ended, and the id of its closing envelope."""
    await at.person("user")
    await at.agent("bot", lambda text: "answer")
    graph = TransitionGraph.sequence(at.names("user", "bot"))
    channel = await at.open("user", ["bot"], graph)
    await channel.send("go")
    await at.settle()
    [end] = [e for e in await at.log(channel) if e.event_type == EV_CHANNEL_CLOSED]
    return channel, end.envelope_id


async def test_r13_a_fork_at_the_closing_envelope_leaves_nothing() -> None:
    """R13: it is refused before the first insert."""
    async with scene() as at:
        channel, end = await ended_channel(at)
        before = await counts(at.hub)
        with pytest.raises(ProtocolError, match="fork at an envelope before it"):
            await at.hub.fork(channel.channel_id, end)
        assert await counts(at.hub) == before


async def test_r13_a_fork_of_an_unknown_type_leaves_nothing() -> None:
    """R13: a hub that does not know the channel's type refuses before the first insert."""
    async with scene() as at:
        channel, _ = await ended_channel(at)
        first = (await at.log(channel))[0].envelope_id
        where = {"channel_id": channel.channel_id}
        await at.hub.store.write(lambda tx: tx.update("channels", where, {"type": "debate"}))
        before = await counts(at.hub)
        with pytest.raises(ProtocolError, match="no channel type 'debate'"):
            await at.hub.fork(channel.channel_id, first)
        assert await counts(at.hub) == before


class Undecided(ConversationAdapter):
    """A channel type that refuses after its message is in the log."""

    def on_accepted(self, metadata: Any, envelope: Envelope, state: Any) -> Any:
        """Raises, as a bug of the type would."""
        if envelope.event_data.get("text") == "no":
            raise NetworkError("cannot decide")
        return super().on_accepted(metadata, envelope, state)


@pytest.mark.parametrize("durable", [False, True])
async def test_r13_an_operation_that_refuses_late_is_taken_back(
    durable: bool, tmp_path: Path
) -> None:
    """R13: what it wrote is rolled back; it is counted, and the channel goes on."""
    store = aa.open_store(f"sqlite:///{tmp_path / 'hub.db'}") if durable else None
    async with scene(store, late_refusals=1) as at:
        at.hub.register_adapter(Undecided())
        await at.person("anna")
        await at.person("ben")
        channel = await at.people["anna"].open(type="conversation", target="ben")
        before = await counts(at.hub)
        with pytest.raises(NetworkError, match="cannot decide"):
            await channel.send("no")
        after = await counts(at.hub)
        grown = {name: after[name] - before[name] for name in before if after[name] != before[name]}
        assert grown.pop("audit", 0) == 1, "the refusal is recorded"
        assert set(grown) <= {"ledger", "chain_heads"}
        await channel.send("yes")
        assert await at.said(channel) == [("anna", "yes")]
    if store is not None:
        await store.aclose()


# --- R14: told once, in order -------------------------------------------------------------------


async def test_r14_a_cancelled_sender_s_message_is_delivered_once_and_first(tmp_path: Path) -> None:
    """R14: the sender is cancelled after its message was accepted: one, two, three."""
    store = aa.open_store(f"sqlite:///{tmp_path / 'hub.db'}")
    async with scene(store) as at:
        anna, ben = await at.person("anna"), await at.person("ben")
        channel = await anna.open(type="conversation", target="ben")
        heard: list[str] = []

        async def note(envelope: Envelope) -> None:
            if is_text(envelope):
                heard.append(envelope.event_data["text"])

        ben.on_envelope(note)
        sending = asyncio.create_task(channel.send("one"))
        await asyncio.sleep(0)
        sending.cancel()
        await channel.send("two")
        await channel.send("three")
        await at.hub.idle()
        await store.flush()
        await at.hub.idle()
        assert sending.cancelled()
        assert [text for _, text in await at.said(channel)] == ["one", "two", "three"]
        assert heard == ["one", "two", "three"]
    await store.aclose()


class Frames:
    """A connection that keeps what is sent over it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def push(self, frame: Any) -> None:
        """Keep the text of a message."""
        if isinstance(frame, Notify) and "text" in frame.envelope["event_data"]:
            self.texts.append(frame.envelope["event_data"]["text"])


async def test_r14_a_replay_after_a_cut_and_waiting_deliveries_tell_once() -> None:
    """R14: what a far participant has been sent again is not delivered a second time."""
    async with scene() as at:
        anna, ben = await at.person("anna"), await at.person("ben")
        channel = await anna.open(type="conversation", target="ben")
        await ben.disconnect()
        frames = Frames()
        far = RemoteParticipant(at.hub, ben.passport, "secret", frames)
        at.hub.attach(far.agent_id, far)
        async with far.gate:
            for text in ("one", "two", "three"):
                await channel.send(text)
            # The connection is cut twice before anything that waits could be sent.
            await catch_up(far, {}, "")
            newest = (await at.log(channel))[-1].envelope_id
            await catch_up(far, {channel.channel_id: newest}, "")
        await channel.send("four")
        await at.hub.idle()
        assert frames.texts == ["one", "two", "three", "four"]
