"""Listeners and the tail of the audit log: told of everything, unable to harm the hub."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network import (
    EV_TEXT,
    AuditLog,
    BaseHubListener,
    Envelope,
    Hub,
    HubListener,
    Passport,
    Resume,
)
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


class Recorder(BaseHubListener):
    """Keeps the name of each call and its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def named(self, method: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of a method."""
        return [arguments for name, arguments in self.calls if name == method]

    async def on_envelope_posted(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("posted", arguments))

    async def on_envelope_rejected(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("rejected", arguments))

    async def on_dispatch_failed(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("undelivered", arguments))

    async def on_channel_event(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("channel", arguments))

    async def on_agent_event(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("agent", arguments))

    async def on_expectation_fired(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("expectation", arguments))

    async def on_turn_failed(self, *arguments: Any) -> None:
        """Keep it."""
        self.calls.append(("turn_failed", arguments))


async def _two_people(at: Scene) -> Any:
    await at.person("ana")
    await at.person("bob")
    return await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))


async def test_a_listener_has_seen_an_operation_when_it_returns() -> None:
    """Registration, opening, a message and the close are told in order, with their objects."""
    async with scene() as at:
        heard = Recorder()
        assert isinstance(heard, HubListener)
        at.hub.register_listener(heard)
        channel = await _two_people(at)
        assert [(kind, facts["passport"].name) for _, kind, facts in heard.named("agent")] == [
            ("registered", "ana"),
            ("registered", "bob"),
        ]
        await channel.send("hello")
        envelope, metadata = heard.named("posted")[-1]
        assert (envelope.event_data, metadata.channel_id) == ({"text": "hello"}, channel.channel_id)
        await channel.close("enough")
        kinds = [kind for _, kind, _ in heard.named("channel")]
        assert kinds == ["created", "opened", "closed"]
        assert heard.named("channel")[-1][2]["reason"] == "enough"


async def test_a_refused_envelope_is_told_with_its_error() -> None:
    """The listener gets the very exception that the sender got."""
    async with scene() as at:
        channel = await _two_people(at)
        heard = Recorder()
        at.hub.register_listener(heard)
        wrong = Envelope(channel.channel_id, at.id("bob"), None, EV_TEXT, {"text": "me first"})
        with pytest.raises(ProtocolError) as raised:
            await at.hub.post_envelope(wrong)
        ((envelope, error),) = heard.named("rejected")
        assert envelope.event_data == {"text": "me first"}
        assert error is raised.value
        assert "envelope_rejected" in [r["kind"] for r in await at.hub.audit_log.read_all()]


async def test_a_flood_of_refusals_does_not_fill_the_store() -> None:
    """At most 60 a minute of one sender are recorded."""
    async with scene() as at:
        channel = await _two_people(at)
        wrong = Envelope(channel.channel_id, at.id("bob"), None, EV_TEXT, {"text": "x"})
        for _ in range(100):
            with pytest.raises(ProtocolError):
                await at.hub.post_envelope(wrong)
        kinds = [r["kind"] for r in await at.hub.audit_log.read_all()]
        assert kinds.count("envelope_rejected") == 60


async def test_a_failed_attempt_is_told_with_its_exception() -> None:
    """The exception of the round, and the envelope that it answered."""

    async def worker(text: str) -> str:
        raise RuntimeError("no such customer")

    async with scene() as at:
        await at.person("ana")
        await at.agent("worker", worker)
        heard = Recorder()
        at.hub.register_listener(heard)
        channel = await at.open(
            "ana", ["worker"], TransitionGraph.sequence(at.names("ana", "worker"))
        )
        sent = await channel.send("go")
        await at.hub.idle()
        channel_id, agent_id, envelope_id, error = heard.named("turn_failed")[0]
        assert (channel_id, agent_id, envelope_id) == (channel.channel_id, at.id("worker"), sent)
        assert isinstance(error, RuntimeError)


async def test_a_missed_deadline_is_told() -> None:
    """The expectation, and who did not meet it."""
    async with scene() as at:
        channel = await _two_people(at)
        heard = Recorder()
        at.hub.register_listener(heard)
        await channel.send("your turn")
        await at.pass_by(121)
        channel_id, expectation, violation = heard.named("expectation")[0]
        assert (channel_id, expectation.name) == (channel.channel_id, "turn_within")
        assert violation.violator_ids == [at.id("bob")]


async def test_a_recipient_that_fails_is_told() -> None:
    """The envelope is accepted; who did not take it, and why, is told."""

    class Deaf:
        run_turn = None

        async def deliver(self, envelope: Envelope, seq: int) -> None:
            """Take nothing."""
            raise OSError("the line is dead")

    async with scene() as at:
        ana = await at.person("ana")
        passport = await at.hub.register_identity(Passport(name="deaf", kind="human"), Resume())
        heard = Recorder()
        at.hub.register_listener(heard)
        events = at.hub.subscribe("dispatch_failed")
        at.hub.attach(passport.agent_id or "", Deaf())
        opening = asyncio.create_task(ana.open(type="conversation", target=["deaf"]))
        event = await events.next(timeout=20)
        assert event.agent_id == passport.agent_id
        while not heard.named("undelivered"):
            await asyncio.sleep(0)
        _, recipient, error = heard.named("undelivered")[0]
        assert (recipient, str(error)) == (passport.agent_id, "the line is dead")
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)


async def test_a_listener_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The operation succeeds, and other listeners are told."""

    class Broken(BaseHubListener):
        async def on_envelope_posted(self, envelope: Any, metadata: Any) -> None:
            """Fail."""
            raise ValueError("my mistake")

    async with scene() as at:
        heard = Recorder()
        at.hub.register_listener(Broken())
        at.hub.register_listener(heard)
        channel = await _two_people(at)
        await channel.send("hello")
        assert len(heard.named("posted")) == 2
        assert "the listener Broken failed on envelope_posted" in caplog.text


async def test_a_listener_that_hangs_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is waited for once, then never again."""
    forever = asyncio.Event()

    class Hanging(BaseHubListener):
        async def on_envelope_posted(self, envelope: Any, metadata: Any) -> None:
            """Wait for ever."""
            await forever.wait()

    async with scene() as at:
        channel = await _two_people(at)
        heard = Recorder()
        at.hub.register_listener(Hanging())
        at.hub.register_listener(heard)
        with caplog.at_level(logging.WARNING):
            await channel.send("one")
        assert "the hub does not wait for it any more" in caplog.text
        for text in ("two", "three"):
            await at.people["bob" if text == "two" else "ana"].send(channel.channel_id, text)
        assert len(heard.named("posted")) == 3


async def test_a_listener_may_use_the_hub() -> None:
    """A method that sends a message is not waited for by that message."""

    class Answering(BaseHubListener):
        def __init__(self, at: Scene) -> None:
            self.at = at

        async def on_envelope_posted(self, envelope: Envelope, metadata: Any) -> None:
            """Answer the question."""
            if envelope.event_data.get("text") == "question":
                await self.at.people["bob"].send(envelope.channel_id, "answer")

    async with scene() as at:
        channel = await _two_people(at)
        at.hub.register_listener(Answering(at))
        await channel.send("question")
        assert [text for _, text in await at.said(channel)] == ["question", "answer"]


async def test_an_unregistered_listener_is_told_no_more() -> None:
    """Neither is one registered twice told twice."""
    async with scene() as at:
        channel = await _two_people(at)
        heard = Recorder()
        at.hub.register_listener(heard)
        at.hub.register_listener(heard)
        await channel.send("one")
        at.hub.unregister_listener(heard)
        at.hub.unregister_listener(heard)
        await at.people["bob"].send(channel.channel_id, "two")
        assert len(heard.named("posted")) == 1


async def test_methods_may_be_plain_functions_and_may_be_missing() -> None:
    """An object with one synchronous method listens."""

    class Small:
        def __init__(self) -> None:
            self.kinds: list[str] = []

        def on_channel_event(self, channel_id: str, kind: str, payload: Any) -> None:
            """Keep the kind."""
            self.kinds.append(kind)

    async with scene() as at:
        small = Small()
        at.hub.register_listener(small)
        await _two_people(at)
        assert small.kinds == ["created", "opened"]


async def test_a_subclass_of_the_hub_observes_itself() -> None:
    """Its `on_…` methods are called without being registered."""

    class Counting(Hub):
        registered = 0

        async def on_agent_event(self, agent_id: str, kind: str, payload: Any) -> None:
            """Count."""
            self.registered += kind == "registered"

    hub = await Counting.open(MemoryStore(), ttl_sweep_interval=0, expectation_sweep_interval=0)
    async with hub:
        await hub.register_identity(Passport(name="ana"), Resume())
        assert vars(hub)["registered"] == 1


async def test_the_tail_of_the_audit_log_is_live() -> None:
    """Every record comes to each subscriber once; one that raises harms nobody."""
    found: list[dict[str, Any]] = []

    async def keep(record: dict[str, Any]) -> None:
        found.append(record)

    async def fail(record: dict[str, Any]) -> None:
        raise ValueError("no")

    async with scene() as at:
        at.hub.audit_log.subscribe(fail)
        at.hub.audit_log.subscribe(keep)
        await at.person("ana")
        await at.hub.audit_log.append({"kind": "backup", "of": "hub.db"})
        assert [record["kind"] for record in found] == ["agent_registered", "backup"]
        assert found == await at.hub.audit_log.read_all()
        assert at.hub.audit_log.bytes_written > 0
        at.hub.audit_log.unsubscribe(keep)
        await at.person("bob")
        assert len(found) == 2


async def test_an_audit_log_of_the_program_s_own_takes_its_place() -> None:
    """It is told as a listener, writes what it adds, and the hub's own records stay."""

    class Mine(AuditLog):
        async def on_agent_event(self, agent_id: str, kind: str, payload: Any) -> None:
            """Add a record."""
            await self.append({"kind": "mine", "what": kind})

    async with scene() as at:
        mine = Mine(at.hub.store)
        at.hub.replace_audit_log(mine)
        assert at.hub.audit_log is mine
        await at.person("ana")
        kinds = [record["kind"] for record in await at.hub.audit_log.read_all()]
        assert kinds == ["agent_registered", "mine"]
