"""Programs with names of `ag2.network` that graphs do not need, over both libraries."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("websockets")

from ag2 import Agent
from ag2.knowledge import MemoryKnowledgeStore
from ag2.testing import TestConfig

from ._network import call

pytestmark = pytest.mark.anyio

Program = Callable[[Any, Any], Awaitable[Any]]


async def _on(library: str, program: Program) -> Any:
    net = importlib.import_module(library)
    async with asyncio.timeout(60):
        return await program(net, MemoryKnowledgeStore())


async def _hub(net: Any, store: Any, **more: Any) -> Any:
    return await net.Hub.open(store, ttl_sweep_interval=0, expectation_sweep_interval=0, **more)


async def _texts(net: Any, hub: Any, channel_id: str, count: int) -> list[Any]:
    """Who said what, once so much was said."""
    while True:
        log = await hub.read_wal(channel_id)
        said = [item for item in log if item.event_type == net.EV_TEXT]
        if len(said) >= count:
            return [(hub.name_for(item.sender_id), item.event_data["text"]) for item in said]
        await asyncio.sleep(0.01)


async def _refused(work: Awaitable[Any]) -> str:
    try:
        await work
    except Exception as exc:
        return type(exc).__name__
    return "allowed"


async def plain_ask(net: Any, store: Any) -> Any:
    """An agent that is asked outside of any channel delegates in one of its own."""
    hub = await _hub(net, store)
    config = TestConfig(call("delegate", '{"target": "bob", "prompt": "lunch?"}'), "It is soup.")
    ann = Agent("ann", config=config)
    await hub.register(ann)
    await hub.register(Agent("bob", config=TestConfig("Soup.")))
    reply = await ann.ask("What is for lunch?")
    ended = await hub.list_channels()
    types = [(item.manifest.type, item.state.value) for item in ended]
    said = await _texts(net, hub, ended[0].channel_id, 2)
    await hub.close()
    return reply.body, types, said


async def say(net: Any, store: Any) -> Any:
    """`say` in a turn sends a text besides what the turn returns."""
    hub = await _hub(net, store)
    hc = net.HubClient(net.LocalLink(hub), hub=hub)
    user = await hc.register_human(net.Passport(name="user"))
    config = TestConfig(call("say", '{"content": "One moment."}'), "It is soup.")
    await hc.register(Agent("bob", config=config), net.Passport(name="bob"), net.Resume())
    channel = await user.open(type="conversation", target="bob")
    await user.send(channel.channel_id, "lunch?")
    said = await _texts(net, hub, channel.channel_id, 3)
    await hub.close()
    return said


async def handler(net: Any, store: Any) -> Any:
    """A handler that notes each envelope and leaves it to `default_handler`."""
    hub = await _hub(net, store)
    hc = net.HubClient(net.LocalLink(hub), hub=hub)
    user = await hc.register_human(net.Passport(name="user"))
    config = TestConfig("Soup.")
    bob = await hc.register(Agent("bob", config=config), net.Passport(name="bob"), net.Resume())
    seen: list[str] = []

    async def noted(envelope: Any) -> None:
        seen.append(envelope.event_type)
        await net.default_handler(envelope, bob)

    bob.on_envelope(noted)
    channel = await user.open(type="conversation", target="bob")
    await user.send(channel.channel_id, "lunch?")
    said = await _texts(net, hub, channel.channel_id, 2)
    await hub.close()
    return said, [kind for kind in seen if kind in (net.EV_CHANNEL_INVITE, net.EV_TEXT)]


async def keys(net: Any, store: Any) -> Any:
    """Each name with its key, and who has another one, none, or another scheme."""
    auth = net.AuthRegistry([net.NoAuth(), net.ApiKeyAuth({"ann": "key-of-ann"})])
    hub = await _hub(net, store, auth=auth)

    def passport(name: str, **auth: Any) -> Any:
        return net.Passport(name=name, auth=net.AuthBlock(**auth))

    async def enter(name: str, **auth: Any) -> str:
        return await _refused(hub.register_identity(passport(name, **auth), net.Resume()))

    found = [
        await enter("ann", scheme="api_key", claim={"token": "another"}),
        await enter("ann", scheme="api_key", claim={}),
        await enter("eve", scheme="api_key", claim={"token": "key-of-ann"}),
        await enter("bob", scheme="magic"),
        await enter("ann", scheme="api_key", claim={"token": "key-of-ann"}),
        await enter("bob"),
    ]
    await hub.close()
    return found, sorted(hub.auth_schemes)


async def proxy(net: Any, store: Any) -> Any:
    """A participant elsewhere is reached through the proxy of its passport's scheme."""
    hub = await _hub(net, store, auth=net.AuthRegistry([net.NoAuth(), _Carried()]))
    ann = await hub.register(Agent("ann", config=TestConfig("unused")))
    passport = net.Passport(
        name="far", kind="remote_agent", auth=net.AuthBlock(scheme="carrier"), version="1"
    )
    wire = _Carrier(net, hub)
    hub.register_remote_proxy(wire)
    far = await hub.register_identity(passport, net.Resume())
    channel = await ann.open(type="conversation", target="far")
    await channel.send("are you there?")
    while len(wire.texts) < 1:
        await asyncio.sleep(0.01)
    answer = net.Envelope(
        channel_id=channel.channel_id,
        sender_id=far.agent_id,
        audience=None,
        event_type=net.EV_TEXT,
        event_data={"text": "I am"},
    )
    await hub.post_envelope(answer)
    said = (await _texts(net, hub, channel.channel_id, 2))[:2]
    known = hub.remote_proxy_for("carrier") is wire
    hub.unregister_remote_proxy("carrier")
    gone = hub.remote_proxy_for("carrier") is None
    await hub.close()
    return said, wire.texts[:1], wire.names, known, gone


class _Carried:
    """Lets everybody in who comes by the carrier."""

    scheme = "carrier"

    async def validate(self, passport: Any, claim: dict[str, Any]) -> None:
        """All of them."""


class _Carrier:
    """Hands envelopes to nobody, and agrees to invitations as its other end would."""

    scheme = "carrier"

    def __init__(self, net: Any, hub: Any) -> None:
        self._net, self._hub = net, hub
        self.texts: list[str] = []
        self.names: set[str] = set()

    async def dispatch(self, envelope: Any, recipient: Any) -> None:
        """Note a text; agree to an invitation."""
        net = self._net
        self.names.add(recipient.name)
        if envelope.event_type == net.EV_TEXT:
            self.texts.append(envelope.event_data["text"])
        if envelope.event_type == net.EV_CHANNEL_INVITE:
            data = {"channel_id": envelope.channel_id}
            ack = net.Envelope(
                channel_id=envelope.channel_id,
                sender_id=recipient.agent_id,
                audience=None,
                event_type=net.EV_CHANNEL_INVITE_ACK,
                event_data=data,
                causation_id=envelope.envelope_id,
            )
            await self._hub.post_envelope(ack)

    async def close(self) -> None:
        """Nothing to release."""


async def frames(net: Any, store: Any) -> Any:
    """A program that speaks frames greets, asks, and hears what is said to its participant."""
    hub = await _hub(net, store)
    hc = net.HubClient(net.LocalLink(hub), hub=hub)
    ann = await hc.register(
        Agent("ann", config=TestConfig("unused")), net.Passport(name="ann"), net.Resume()
    )
    far = await hub.register_identity(net.Passport(name="far"), net.Resume())
    async with net.serve_ws(hub, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        wire = net.WsLinkClient(f"ws://127.0.0.1:{port}")
        await wire.open()
        arrived = wire.frames()
        await wire.send_frame(net.HelloFrame(name="far"))
        kinds = [type(await anext(arrived)).__name__]
        opening = asyncio.create_task(
            ann.open(type="conversation", target="far", knobs={}, intent="talk")
        )
        invite = await anext(arrived)
        kinds.append((type(invite).__name__, invite.envelope.event_type, invite.recipient_id))
        ack = net.Envelope(
            channel_id=invite.envelope.channel_id,
            sender_id=far.agent_id,
            audience=None,
            event_type=net.EV_CHANNEL_INVITE_ACK,
            event_data={"channel_id": invite.envelope.channel_id},
            causation_id=invite.envelope.envelope_id,
        )
        asked = net.RequestFrame("1", "post_envelope", {"envelope": ack.to_dict()})
        await wire.send_frame(asked)
        channel = await opening
        await channel.send("hello")
        heard = []
        while "hello" not in heard:
            frame = await anext(arrived)
            if isinstance(frame, net.NotifyFrame):
                heard.append(frame.envelope.event_data.get("text"))
            else:
                kinds.append((type(frame).__name__, frame.request_id, frame.ok))
        await wire.close()
    await hub.close()
    return [item if isinstance(item, str) else _plain(item, far.agent_id) for item in kinds]


def _plain(item: tuple[Any, ...], far: str) -> tuple[Any, ...]:
    return tuple("far" if part == far else part for part in item)


@pytest.mark.parametrize(
    "program", [plain_ask, say, handler, keys, proxy, frames], ids=lambda item: item.__name__
)
async def test_both_libraries_do_the_same(program: Program) -> None:
    """What the program finds is equal."""
    assert await _on("agent_adapter.network", program) == await _on("ag2.network", program)
