"""An arbiter of the program's own decides wherever something enters a hub."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.errors import AccessDeniedError, InboxFull, ProtocolError
from agent_adapter.flow import Envelope
from agent_adapter.network import (
    Allow,
    BaseHubArbiter,
    ChannelManifest,
    ChannelMetadata,
    ConversationAdapter,
    Decision,
    Deny,
    HubArbiter,
    InboxBlock,
    LimitsBlock,
    Passport,
    Rule,
    RuleBasedArbiter,
)
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


class Watching(BaseHubArbiter):
    """Denies the gate it is told to, and notes which were asked."""

    def __init__(self) -> None:
        self.denies = ""
        self.asked: list[str] = []

    def _say(self, gate: str) -> Decision:
        self.asked.append(gate)
        return Deny(f"{gate} says no") if gate == self.denies else Allow()

    async def authorize_register(self, *about: Any) -> Decision:
        """Asked for each participant."""
        return self._say("register")

    async def authorize_channel_open(self, *about: Any) -> Decision:
        """Asked for each channel."""
        return self._say("open")

    async def authorize_send(self, *about: Any) -> Decision:
        """Asked for each message, and for each answer to an invitation."""
        return self._say("send")

    async def authorize_inbox(self, *about: Any) -> Decision:
        """Asked for each recipient."""
        return self._say("inbox")

    async def authorize_dispatch(self, envelope: Envelope, *about: Any) -> Decision:
        """Asked for each recipient of a text."""
        return self._say("dispatch") if envelope.event_type == "ag2.msg.text" else Allow()


async def _talk(at: Scene) -> Any:
    await at.person("ana")
    await at.person("bob")
    return await at.people["ana"].open(type="conversation", target=["bob"])


async def test_every_gate_is_asked() -> None:
    """N5: who registers, who opens, who agrees, what is sent, to whom, and into which inbox."""
    own = Watching()
    async with scene(arbiter=own) as at:
        channel = await _talk(at)
        await channel.send("hello")
    assert own.asked == ["register", "register", "open", "send", "send", "dispatch", "inbox"]


@pytest.mark.parametrize("gate", ["send", "inbox"])
async def test_a_refused_message_is_not_in_the_log(gate: str) -> None:
    """N5: an async gate that returns `Deny` refuses, and nothing is written."""
    own = Watching()
    async with scene(arbiter=own) as at:
        channel = await _talk(at)
        own.denies = gate
        with pytest.raises(AccessDeniedError, match=f"{gate} says no"):
            await channel.send("hello")
        assert await at.said(channel) == []


async def test_a_refused_registration_and_a_refused_channel_leave_nothing() -> None:
    """N5: nobody is registered, no channel is made."""
    own = Watching()
    async with scene(arbiter=own) as at:
        await at.person("ana")
        await at.person("bob")
        own.denies = "register"
        with pytest.raises(AccessDeniedError, match="register says no"):
            await at.person("eve")
        assert at.hub.find_agent_id("eve") is None
        own.denies = "open"
        with pytest.raises(AccessDeniedError, match="open says no"):
            await at.people["ana"].open(type="conversation", target=["bob"])
        assert await at.hub.list_channels() == []


async def test_whom_the_dispatch_gate_denies_does_not_see_the_message() -> None:
    """N5: the others still receive it."""

    class NotBob(BaseHubArbiter):
        async def authorize_dispatch(
            self, envelope: Envelope, sender: Passport, recipient: Passport, rule: Rule
        ) -> Decision:
            hidden = recipient.name == "bob" and "text" in envelope.event_data
            return Deny("not for bob") if hidden else Allow()

    async with scene(arbiter=NotBob()) as at:
        for name in ("ana", "bob", "eve"):
            await at.person(name)
        graph = TransitionGraph.round_robin(at.names("ana", "eve", "bob"))
        channel = await at.open("ana", ["eve", "bob"], graph)
        await channel.send("psst")
        [text] = [item for item in await at.log(channel) if "text" in item.event_data]
        assert text.audience == [at.id("eve")]


async def test_the_latest_registered_arbiter_decides() -> None:
    """`hub.arbiter` is it."""
    async with scene() as at:
        hub: Any = at.hub
        assert type(hub.arbiter) is RuleBasedArbiter
        channel = await _talk(at)
        own = Watching()
        own.denies = "send"
        at.hub.register_arbiter(own)
        assert hub.arbiter is own and issubclass(Watching, HubArbiter)
        with pytest.raises(AccessDeniedError):
            await channel.send("hello")
        with pytest.raises(TypeError, match="lacks"):
            hub.register_arbiter(object())
        assert hub.arbiter is own


async def test_own_messages_do_not_fill_an_inbox() -> None:
    """N9: after three texts of its own a participant still receives the first of another."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=2)))
    async with scene() as at:
        ana = await at.person("ana")
        bob = await at.agent("bob", lambda text: None, rule=rule)
        channel = await ana.open(type="conversation", target=["bob"])
        await at.hub.detach(bob.agent_id)
        handle = await bob.channel(channel.channel_id)
        for text in ("one", "two", "three"):
            await handle.send(text)
        await channel.send("four")
        assert (await at.said(channel))[-1] == ("ana", "four")


async def test_the_messages_of_others_fill_an_inbox() -> None:
    """N9: what an agent that is away was sent counts, and is told before the limit is reached."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=2, high_water=2)))
    async with scene() as at:
        ana = await at.person("ana")
        bob = await at.agent("bob", lambda text: None, rule=rule)
        channel = await ana.open(type="conversation", target=["bob"])
        await at.hub.detach(bob.agent_id)
        await channel.send("one")
        await channel.send("two")
        with pytest.raises(InboxFull, match="2 messages wait for bob"):
            await channel.send("three")
        await at.settle()
        told = [r for r in await at.hub.audit_log.read_all() if r["kind"] == "inbox_pressure"]
        assert [(r["agent_id"], r["pending"], r["cap"]) for r in told] == [(bob.agent_id, 2, 2)]


async def test_a_person_who_reads_nothing_stops_no_channel() -> None:
    """N9: 3,000 unread messages, a callback that hangs, and the next one is accepted still."""
    import asyncio

    hangs, arrived = asyncio.Event(), []

    async def callback(envelope: Envelope) -> None:
        arrived.append(envelope)
        await hangs.wait()

    async with scene() as at:
        ana = await at.person("ana")
        bob = await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"])
        bob.on_envelope(callback)
        for number in range(3000):
            await channel.send(str(number))
        outbox = at.hub._service._outboxes[bob.agent_id]
        assert len(outbox._waiting) <= 1000, "the rest is in the log"
        hangs.set()
        await at.settle()
        texts = [e.event_data["text"] for e in arrived if "text" in e.event_data]
        assert texts == [str(number) for number in range(3000)]
        assert outbox.messages == 0


async def test_a_person_who_is_away_stops_no_channel() -> None:
    """N9: not even with a limit of their own; they find everything in the log."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=2)))
    async with scene() as at:
        ana = await at.person("ana")
        bob = await at.person("bob", rule=rule)
        channel = await ana.open(type="conversation", target=["bob"])
        await bob.disconnect()
        for number in range(5):
            await channel.send(str(number))
        assert len(await at.said(channel)) == 5


class _Refusing(ConversationAdapter):
    """A type whose checks the tests replace."""

    manifest = ChannelManifest("own")


class AsyncSend(_Refusing):
    """Looks something up before it accepts."""

    async def validate_send(self, metadata: Any, envelope: Envelope, state: Any) -> None:  # type: ignore[override]
        """Refuses rude words."""
        if "rude" in str(envelope.event_data.get("text")):
            raise ProtocolError("be kind")


class AsyncCreate(_Refusing):
    """Looks something up before a channel opens."""

    async def validate_create(self, metadata: ChannelMetadata) -> None:  # type: ignore[override]
        """Refuses every channel."""
        raise ProtocolError("closed today")


async def test_an_async_check_of_a_channel_type_is_awaited() -> None:
    """N5: what it refuses is refused, what it accepts is accepted."""
    async with scene() as at:
        at.hub.register_adapter(AsyncSend())
        ana = await at.person("ana")
        await at.agent("bob", lambda text: "rude reply" if "go" in text else "fine")
        channel = await ana.open(type="own", target=["bob"])
        with pytest.raises(ProtocolError, match="be kind"):
            await channel.send("rude")
        await channel.send("hello")
        await at.settle()
        assert await at.said(channel) == [("ana", "hello"), ("bob", "fine")]
        await channel.send("go")
        await at.settle()
        assert ("bob", "rude reply") not in await at.said(channel)


async def test_an_async_check_of_an_opening_is_awaited() -> None:
    """N5: no channel is made."""
    async with scene() as at:
        at.hub.register_adapter(AsyncCreate())
        ana = await at.person("ana")
        await at.person("bob")
        with pytest.raises(ProtocolError, match="closed today"):
            await ana.open(type="own", target=["bob"])
        assert await at.hub.list_channels() == []


@pytest.mark.parametrize("said", [False, True, Deny("no"), "x", ValueError("broken")])
@pytest.mark.parametrize("waits", [True, False], ids=["async", "plain"])
async def test_a_check_accepts_by_returning_nothing(said: Any, waits: bool) -> None:
    """N5: another value, and an exception of any kind, refuse."""

    def answer() -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    async def later(self: Any, *about: Any) -> Any:
        return answer()

    check = later if waits else lambda self, *about: answer()
    own = type("Own", (_Refusing,), {"validate_send": check})()
    async with scene() as at:
        at.hub.register_adapter(own)
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="own", target=["bob"])
        with pytest.raises(ProtocolError, match="which refuses"):
            await channel.send("hello")
        assert await at.said(channel) == []


async def test_a_plain_check_that_returns_an_awaitable_refuses() -> None:
    """N5: it was never awaited, so it said nothing; the error says how to declare it."""

    async def looks_up() -> None:
        return None

    own = type("Own", (_Refusing,), {"validate_send": lambda self, *about: looks_up()})()
    async with scene() as at:
        at.hub.register_adapter(own)
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="own", target=["bob"])
        with pytest.raises(ProtocolError, match="declare it with `async def`"):
            await channel.send("hello")


async def test_what_a_log_is_folded_with_may_not_be_async() -> None:
    """Registering such a type fails and names the methods."""

    class Late(_Refusing):
        async def fold(self, envelope: Envelope, state: Any) -> Any:  # type: ignore[override]
            return state

    async with scene() as at:
        with pytest.raises(ProtocolError, match="'own' has async fold"):
            at.hub.register_adapter(Late())
