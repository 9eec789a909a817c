"""`hub.subscribe`: one durable stream of what happened, for as many readers as there are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.network import EV_TEXT, Hub, Passport
from agent_adapter.network.events.feed import Subscription
from agent_adapter.store import open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import FakeClock, Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio

TURNS = ("turn_due", "turn_started", "turn_done")


async def _answer(text: str) -> str:
    return f"heard {text}"


async def _pair(at: Scene) -> Any:
    """A person and an agent in a conversation."""
    ana = await at.person("ana")
    await at.agent("bot", _answer)
    return await ana.open(type="conversation", target=[at.id("bot")])


async def _next(events: Subscription, count: int) -> list[Any]:
    return [await events.next(timeout=10) for _ in range(count)]


async def test_a_message_its_turn_and_the_answer_are_events_in_order() -> None:
    """Posted, due, started, posted, done: with the ids of channel, speaker, turn and envelope."""
    async with scene() as at:
        channel = await _pair(at)
        events = at.hub.subscribe([*TURNS, "envelope_posted"])
        await channel.send("hello")
        found = await _next(events, 5)
        assert [event.kind for event in found] == [
            "envelope_posted",
            "turn_due",
            "turn_started",
            "envelope_posted",
            "turn_done",
        ]
        assert {event.channel_id for event in found} == {channel.channel_id}
        assert [event.agent_id for event in found] == [at.id("ana"), *[at.id("bot")] * 4]
        assert len({event.turn_id for event in found[1:]}) == 1
        first = found[0].envelope
        assert first is not None and (first.event_type, first.event_data) == (
            EV_TEXT,
            {"text": "hello"},
        )


async def test_a_subscription_begins_where_it_is_made() -> None:
    """What came before is not returned, and what comes before the first read is."""
    async with scene() as at:
        channel = await _pair(at)
        await channel.send("before")
        await at.settle()
        events = at.hub.subscribe("envelope_posted")
        await channel.send("after")
        (event,) = await _next(events, 1)
        assert event.payload["envelope"]["event_data"]["text"] == "after"


async def test_the_empty_cursor_is_the_begin_of_the_stream() -> None:
    """Everything that is kept comes again: registrations, channels, messages."""
    async with scene() as at:
        await _pair(at)
        kinds = [event.kind for event in await _next(at.hub.subscribe(after=""), 3)]
        assert kinds == ["agent_registered", "agent_registered", "channel_created"]


async def test_a_cursor_survives_the_hub(tmp_path: Path) -> None:
    """A reader that comes back continues behind its cursor, with what another hub did meanwhile."""
    path = tmp_path / "hub.db"
    store = open_store(path)
    async with scene(store) as at:
        channel = await _pair(at)
        events = at.hub.subscribe("envelope_posted")
        await channel.send("one")
        (first,) = await _next(events, 1)
        await at.settle()
    await store.aclose()
    store = open_store(path)
    async with scene(store) as at:
        bot, ana = await at.agent("bot", _answer), await at.person("ana")
        await ana.send(channel.channel_id, "two")
        await at.settle()
        events = at.hub.subscribe("envelope_posted", after=first.cursor)
        texts = [event.payload["envelope"]["event_data"] for event in await _next(events, 3)]
        assert [data.get("text") for data in texts] == ["heard one", "two", "heard two"]
        assert bot.agent_id
    await store.aclose()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_positions_never_repeat_and_grow_with_the_log(kind: str, tmp_path: Path) -> None:
    """A clock that stands still, or was set back, changes nothing in the order."""
    clock = FakeClock()
    store = (
        MemoryStore(clock=clock) if kind == "memory" else open_store(tmp_path / "h", clock=clock)
    )
    async with scene(store, clock=clock) as at:
        channel = await _pair(at)
        for number in range(5):
            await channel.send(str(number))
            await at.settle()
            clock.pass_by(-60)
        events = at.hub.subscribe(after="")
        found: list[Any] = []
        while len(found) < 30:
            found.append(await events.next(timeout=10))
        places = [int(event.cursor) for event in found]
        assert places == sorted(set(places))
        said = [event.payload["seq"] for event in found if event.kind == "envelope_posted"]
        assert said == sorted(said)
    await store.aclose()


async def test_each_of_many_readers_gets_everything() -> None:
    """Fifty subscriptions read the same events, each at its own pace."""
    async with scene() as at:
        channel = await _pair(at)
        readers = [at.hub.subscribe("envelope_posted") for _ in range(50)]
        await channel.send("hello")
        both = await asyncio.gather(*(_next(events, 2) for events in readers))
        assert len({tuple(event.cursor for event in found) for found in both}) == 1


async def test_a_reader_that_does_not_read_holds_nothing() -> None:
    """A slow reader costs nobody: the stream is in the store, and one page at most in memory."""
    async with scene() as at:
        channel = await _pair(at)
        slow = at.hub.subscribe()
        await channel.send("first")
        await slow.next(timeout=10)
        for number in range(300):
            await channel.send(str(number))
        await at.settle()
        assert len(slow._page) <= 200
        texts: list[str] = []
        while "299" not in texts:
            event = await slow.next(timeout=10)
            if event.envelope is not None:
                texts.append(str(event.envelope.event_data["text"]))
        assert [text for text in texts if text.isdigit()] == list(map(str, range(300)))


async def test_every_event_comes_once_also_across_pages() -> None:
    """Sources of different pace are merged in order, without gaps and repetitions."""
    async with scene() as at:
        channel = await _pair(at)
        events = at.hub.subscribe(["turn_done", "envelope_posted"])
        for number in range(250):
            await channel.send(str(number))
        await at.settle()
        texts: list[str] = []
        last = 0
        while "249" not in texts:
            event = await events.next(timeout=10)
            assert int(event.cursor) > last
            last = int(event.cursor)
            if event.envelope is not None:
                texts.append(str(event.envelope.event_data["text"]))
        assert [text for text in texts if not text.startswith("heard")] == list(
            map(str, range(250))
        )


async def test_the_stream_ends_with_its_hub() -> None:
    """A reader that waits is let go when the hub is closed."""
    hub = await Hub.open(MemoryStore(), ttl_sweep_interval=0, expectation_sweep_interval=0)
    events = hub.subscribe()

    async def read() -> list[str]:
        return [event.kind async for event in events]

    task = asyncio.create_task(read())
    await hub.register_identity(Passport(name="ana", kind="human"), _resume())
    await asyncio.sleep(0)
    await hub.close()
    assert await asyncio.wait_for(task, 10) in ([], ["agent_registered"])


async def test_a_closed_subscription_ends() -> None:
    """Closing it lets its reader go, and no other."""
    async with scene() as at:
        events = at.hub.subscribe()
        waiting = asyncio.create_task(anext(events, None))
        await asyncio.sleep(0)
        await events.aclose()
        assert await asyncio.wait_for(waiting, 10) is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"kinds": ["turn_don"]}, "did you mean 'turn_done'"),
        ({"after": "yesterday"}, "is no cursor"),
        ({"after": "-1"}, "is no cursor"),
        ({"after": "9" * 30}, "is no cursor"),
    ],
)
async def test_bad_arguments_are_named(arguments: dict[str, Any], problem: str) -> None:
    """A misspelt kind and a cursor that no event has are refused at once."""
    async with scene() as at:
        with pytest.raises(ValueError, match=problem):
            at.hub.subscribe(**arguments)


async def test_events_of_another_tenant_are_left_out() -> None:
    """A reader for one tenant sees its channels alone."""
    async with scene() as at:
        channel = await _pair(at)
        await at.hub.store.write(
            lambda tx: tx.update("channels", {"channel_id": channel.channel_id}, {"tenant": "acme"})
        )
        theirs = at.hub.subscribe("channel_created", after="", tenant="acme")
        assert (await theirs.next(timeout=10)).channel_id == channel.channel_id
        page = await at.hub._service.feed.page(0, frozenset(["channel_created"]), 10, "other")
        assert page.events == []


async def test_what_another_process_wrote_is_found(tmp_path: Path) -> None:
    """A turn that somebody else woke in the store is an event here."""
    from agent_adapter.store import waits

    store, other = open_store(tmp_path / "h.db"), open_store(tmp_path / "h.db")
    async with scene(store) as at:
        ana = await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.sequence(at.names("ana", "bob"))
        channel = await at.open("ana", ["bob"], graph)
        await channel.send("go")
        (turn,) = await at.hub.pending_turns_for(at.id("bob"))
        await store.write(
            lambda tx: tx.update("turns", {"turn_id": turn.turn_id}, {"state": "parked"})
        )
        events = at.hub.subscribe("turn_due")
        await other.write(lambda tx: waits.wake_turn(tx, turn.turn_id))
        assert (await events.next(timeout=30)).turn_id == turn.turn_id
        assert ana.connected
    await other.aclose()
    await store.aclose()


def _resume() -> Any:
    from agent_adapter.network import Resume

    return Resume()
