"""A hub over a WebSocket: who is let in, what they may do, and what survives a cut wire."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_adapter.core.errors import (
    AccessDeniedError,
    AuthError,
    NetworkError,
    NotFoundError,
    ProtocolError,
    StaleTurn,
)
from agent_adapter.exec.executor import Executor
from agent_adapter.flow.context_vars import VALUE_LIMIT
from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_INVITE,
    EV_TEXT,
    Envelope,
    Hub,
    HubClient,
    LimitsBlock,
    LocalLink,
    Passport,
    Resume,
    Rule,
    TokenAuth,
    TransitionGraph,
    Turn,
    WebSocketLink,
    WebSocketServer,
    default_handler,
    serve,
)
from agent_adapter.network.links.frames import Hello, encode_frame
from agent_adapter.network.workflow_helpers import set_context
from agent_adapter.store.keys import conversation_key
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.taint import labels
from tests.network._relay import relay

pytestmark = pytest.mark.anyio

pytest.importorskip("websockets")

TOKEN = "a-token-of-sixteen-or-more"


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    """A hub over memory, without sweepers."""
    async with await Hub.open(
        MemoryStore(), ttl_sweep_interval=0, expectation_sweep_interval=0
    ) as opened:
        yield opened


@pytest.fixture
async def here(hub: Hub) -> AsyncIterator[HubClient]:
    """A client in the hub's own process."""
    async with HubClient(LocalLink(hub)) as made:
        yield made


@pytest.fixture
async def server(hub: Hub) -> AsyncIterator[WebSocketServer]:
    """The hub's door, open to everybody on this machine."""
    async with serve(hub, grace=5.0) as made:
        yield made


@pytest.fixture
async def there(server: WebSocketServer) -> AsyncIterator[HubClient]:
    """A client at the other end of a WebSocket."""
    async with joined(server.url) as made:
        yield made


@asynccontextmanager
async def joined(url: str, **more: Any) -> AsyncIterator[HubClient]:
    """A client of the hub at `url`, with an executor of its own."""
    executor = Executor(store=MemoryStore())
    async with HubClient(WebSocketLink(url, **more), executor=executor) as made:
        yield made


async def echo(text: str) -> str:
    """Answers with what it has heard."""
    return f"heard {text}"


def is_text(envelope: Envelope) -> bool:
    """Whether it is a text."""
    return envelope.event_type == EV_TEXT


def is_closed(envelope: Envelope) -> bool:
    """Whether it ends the channel."""
    return envelope.event_type == EV_CHANNEL_CLOSED


# --- taking part ----------------------------------------------------------------------------------


async def test_far_agent_takes_its_turn(here: HubClient, there: HubClient) -> None:
    """An agent at the other end of the wire answers what is said here."""
    anna = await here.register_human(Passport(name="anna"))
    await there.register(echo, Passport(name="bot"), attach_plugin=False)
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert answer.event_data["text"] == "heard hello"


async def test_far_person_opens_a_channel(here: HubClient, there: HubClient) -> None:
    """A person at the other end opens a channel, reads and is read."""
    await here.register(echo, Passport(name="bot"), attach_plugin=False)
    anna = await there.register_human(Passport(name="anna"))
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    answer = await anna.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=is_text, timeout=60
    )
    assert answer.event_data["text"] == "heard hello"
    assert (await channel.info()).close_reason == "consulting_complete"


async def test_workflow_across_the_wire(here: HubClient, there: HubClient) -> None:
    """A workflow goes through participants here and there, with variables set on the way."""

    async def decide(turn: Turn) -> str:
        await set_context(turn.channel, "approved", True)
        return f"decided on {turn.context_vars['case']}"

    anna = await here.register_human(Passport(name="anna"))
    bot = await there.register(decide, Passport(name="bot"), attach_plugin=False)
    graph = TransitionGraph.sequence([anna.agent_id, bot.agent_id])
    channel = await anna.open(
        type="workflow",
        target="bot",
        knobs={"graph": graph.to_dict(), "context_vars": {"case": 7}},
    )
    await channel.send("please decide")
    await anna.next_envelope(predicate=is_closed, timeout=60)
    state = await there.adapter_state(channel.channel_id)
    assert state == await here.adapter_state(channel.channel_id)
    assert state.context_vars == {"case": 7, "approved": True}


async def test_directory_is_read_over_the_wire(here: HubClient, there: HubClient) -> None:
    """Who there is, and what they can do, is read as in the hub's own process."""
    bot = await here.register(
        echo, Passport(name="bot"), Resume(claimed_capabilities=["refunds"]), attach_plugin=False
    )
    assert await there.get_agent("bot") == bot.passport
    assert await there.list_agents(capability="refunds") == [bot.passport]
    assert (await there.get_resume(bot.agent_id)).claimed_capabilities == ["refunds"]


async def test_failing_far_agent_closes_the_channel(
    hub: Hub, here: HubClient, there: HubClient
) -> None:
    """A round that breaks the protocol at the other end ends the channel as one here does."""

    async def broken(text: str) -> str:
        raise ProtocolError("cannot go on")

    anna = await here.register_human(Passport(name="anna"))
    await there.register(broken, Passport(name="bot"), attach_plugin=False)
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    closed = await anna.next_envelope(predicate=is_closed, timeout=60)
    assert closed.event_data["reason"] == "turn_failed"


async def test_the_cause_of_a_far_failure_is_told(
    hub: Hub, here: HubClient, there: HubClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Class and text cross the connection; the traceback is in the log of the other end."""

    async def broken(text: str) -> str:
        raise ValueError("cannot go on")

    anna = await here.register_human(Passport(name="anna"))
    bot = await there.register(broken, Passport(name="bot"), attach_plugin=False)
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    while not (records := await _failures(hub)):
        await asyncio.sleep(0.01)
    assert (records[0]["exc_type"], records[0]["exc_message"]) == ("ValueError", "cannot go on")
    assert any(record.exc_info for record in caplog.records)
    await bot.disconnect()


async def _failures(hub: Hub) -> list[dict[str, Any]]:
    return [r for r in await hub.audit_log.read_all() if r["kind"] == "turn_failed"]


async def test_an_opener_reopens_its_channel_over_a_connection(
    here: HubClient, there: HubClient
) -> None:
    """Only the opener's connection may; the channel goes on."""
    anna = await here.register_human(Passport(name="anna"))
    bob = await there.register_human(Passport(name="bob"))
    channel = await bob.open(type="conversation", target="anna")
    await channel.close("too early")
    assert not (await there.reopen(channel.channel_id)).is_terminal()
    await anna.send(channel.channel_id, "still here")
    other = await anna.open(type="conversation", target="bob")
    await other.close("too early")
    with pytest.raises(AccessDeniedError, match="only the opener"):
        await there.reopen(other.channel_id)


async def test_far_handler_takes_the_agent_s_place(here: HubClient, there: HubClient) -> None:
    """A handler at the other end answers instead of an agent."""
    bot = await there.register(echo, Passport(name="bot"), attach_plugin=False)

    async def handle(envelope: Envelope) -> None:
        if envelope.event_type == "ag2.channel.invite":
            await bot.accept_invite(envelope)
        if is_text(envelope):
            await (await bot.channel(envelope.channel_id)).send("by hand")

    bot.on_envelope(handle)
    anna = await here.register_human(Passport(name="anna"))
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert answer.event_data["text"] == "by hand"


async def test_a_far_handler_is_offered_a_turn_once(
    hub: Hub, here: HubClient, there: HubClient
) -> None:
    """A turn that a handler leaves alone waits; the hub does not start it again and again."""
    bot = await there.register(echo, Passport(name="bot"), attach_plugin=False)

    async def handle(envelope: Envelope) -> None:
        if envelope.event_type == EV_CHANNEL_INVITE:
            await bot.accept_invite(envelope)

    bot.on_envelope(handle)
    anna = await here.register_human(Passport(name="anna"))
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")

    async def attempts() -> tuple[str, int]:
        [turn] = await hub.store.read(lambda tx: tx.select("turns", {"agent_id": bot.agent_id}))
        return turn["state"], turn["attempt"]

    async with asyncio.timeout(60):
        while await attempts() != ("due", 1):
            await asyncio.sleep(0.01)
    for _ in range(5):
        await hub.poll()
        await hub.idle()
    assert await attempts() == ("due", 1)
    bot.on_envelope(None)
    answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert answer.event_data["text"] == "heard hello"


async def test_a_far_handler_leaves_a_turn_to_the_agent(here: HubClient, there: HubClient) -> None:
    """`default_handler` at the other end runs the agent, once a turn."""
    runs: list[int] = []

    async def counted(turn: Turn) -> str:
        runs.append(turn.attempt)
        return f"heard {turn.input_text}"

    bot = await there.register(counted, Passport(name="bot"), attach_plugin=False)
    seen: list[str] = []

    async def handle(envelope: Envelope) -> None:
        seen.append(envelope.event_type)
        await default_handler(envelope, bot)

    bot.on_envelope(handle)
    anna = await here.register_human(Passport(name="anna"))
    channel = await anna.open(type="conversation", target="bot")
    for text in ("one", "two"):
        await channel.send(text)
        answer = await anna.next_envelope(predicate=is_text, timeout=60)
        assert answer.event_data["text"] == f"heard {text}"
    assert len(runs) == 2
    assert seen.count(EV_TEXT) == 2


async def test_large_channels_are_read_in_pages(here: HubClient, there: HubClient) -> None:
    """A log that is longer than a frame is read whole all the same."""
    anna = await here.register_human(Passport(name="anna"))
    await there.register_human(Passport(name="ben"))
    channel = await anna.open(type="conversation", target="ben")
    for _ in range(30):
        await channel.send("x" * 200_000)
    log = await there.read_wal(channel.channel_id)
    assert log == await here.read_wal(channel.channel_id)
    assert await there.read_wal(channel.channel_id, since=3, until=5) == log[3:5]


# --- who is let in --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "hub.example"])
async def test_beyond_this_machine_tokens_are_needed(hub: Hub, host: str) -> None:
    """A hub does not listen to other machines without an authenticator."""
    with pytest.raises(AuthError, match="authenticator=TokenAuth"):
        serve(hub, host)


async def test_without_encryption_there_is_a_warning(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    """Listening to other machines without TLS is noted."""
    async with serve(hub, "0.0.0.0", authenticator=TokenAuth({TOKEN: "*"})):
        assert "without TLS" in caplog.text


@pytest.mark.parametrize("token", [None, "a-wrong-token-of-some-length"])
async def test_wrong_token_is_turned_away(hub: Hub, token: str | None) -> None:
    """A connection without a known token is none, and the hub's log does not have the token."""
    async with serve(hub, authenticator=TokenAuth({TOKEN: "bot"})) as server:
        client = HubClient(WebSocketLink(server.url, token=token))
        with pytest.raises(AuthError, match="does not know this token"):
            await client.register(echo, Passport(name="bot"), attach_plugin=False)
        await client.close()


async def test_token_permits_its_names_alone(hub: Hub) -> None:
    """A connection goes by the names that its token stands for, and by no other."""
    async with (
        serve(hub, authenticator=TokenAuth({TOKEN: ["bot-*"]})) as server,
        joined(server.url, token=TOKEN) as client,
    ):
        await client.register(echo, Passport(name="bot-1"), attach_plugin=False)
        with pytest.raises(AuthError, match=r"'boss', only by bot-\*"):
            await client.register(echo, Passport(name="boss"), attach_plugin=False)


@pytest.mark.parametrize(
    "url",
    [
        "ws://127.0.0.1:1/?token=abc",
        "ws://me:secret@127.0.0.1:1",
        "http://127.0.0.1:1",
        "127.0.0.1:1",
    ],
)
def test_no_secret_in_an_address(url: str) -> None:
    """An address with a token or a password in it is refused, and is not in the error."""
    with pytest.raises(ValueError, match="a hub's address") as caught:
        WebSocketLink(url)
    assert "secret" not in str(caught.value)
    assert "abc" not in str(caught.value)


async def test_nobody_at_the_address(server: WebSocketServer) -> None:
    """An address where no hub answers is named."""
    url = server.url
    await server.close()
    client = HubClient(WebSocketLink(url))
    with pytest.raises(NetworkError, match=f"no hub answers at {url}"):
        await client.get_agent("bot")


async def raw(server: WebSocketServer, path: str = "", **headers: Any) -> Any:
    """A bare WebSocket to the hub."""
    from websockets.asyncio.client import connect

    return await connect(server.url + path, proxy=None, **headers)


async def test_pages_of_others_cannot_connect(hub: Hub, server: WebSocketServer) -> None:
    """A web page is let in only if it is one of those listed."""
    from websockets.exceptions import InvalidStatus
    from websockets.typing import Origin

    with pytest.raises(InvalidStatus, match="403"):
        await raw(server, origin=Origin("https://evil.example"))
    async with serve(hub, origins=["https://hub.example"]) as open_to_one:
        page = await raw(open_to_one, origin=Origin("https://hub.example"))
        await page.close()


async def test_query_is_refused(server: WebSocketServer) -> None:
    """A connection with a query in its address is turned away: tokens end up there."""
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus, match="400"):
        await raw(server, "/?token=abc")


# --- what the other end may not do ----------------------------------------------------------------


async def hello(server: WebSocketServer) -> Any:
    """A bare connection after its first word."""
    socket = await raw(server)
    for text in encode_frame(Hello(version=1, instance=secrets.token_urlsafe(32))):
        await socket.send(text)
    assert json.loads(await socket.recv())["kind"] == "welcome"
    return socket


async def asked(socket: Any, op: str, **params: Any) -> dict[str, Any]:
    """What the hub answers."""
    await socket.send(json.dumps({"kind": "request", "id": 1, "op": op, "params": params}))
    while True:
        answer: dict[str, Any] = json.loads(await socket.recv())
        if answer["kind"] == "response":
            return answer


@pytest.mark.parametrize(
    "first",
    [
        "{",
        json.dumps({"kind": "request", "id": 1, "op": "list_agents"}),
        json.dumps({"kind": "hello", "version": 99, "instance": "i" * 40}),
        json.dumps({"kind": "hello", "version": 1, "instance": "short"}),
    ],
)
async def test_bad_first_word_ends_the_connection(server: WebSocketServer, first: str) -> None:
    """A connection that does not begin as it should is told why, and ended."""
    from websockets.exceptions import ConnectionClosed

    socket = await raw(server)
    await socket.send(first)
    assert json.loads(await socket.recv())["error"] == "protocol-error"
    with pytest.raises(ConnectionClosed):
        await socket.recv()


async def test_frames_beyond_a_megabyte_end_the_connection(server: WebSocketServer) -> None:
    """A frame that is too long is not read."""
    from websockets.exceptions import ConnectionClosed

    socket = await hello(server)
    await socket.send(json.dumps({"kind": "request", "id": 1, "op": "x" * 1_100_000}))
    with pytest.raises(ConnectionClosed, match="1009"):
        await socket.recv()


async def test_too_long_a_request_is_refused_before_it_is_sent(
    here: HubClient, there: HubClient
) -> None:
    """A message that does not fit a frame is an error with the limit, and the wire stays."""
    await here.register_human(Passport(name="ben"))
    anna = await there.register_human(Passport(name="anna"))
    channel = await anna.open(type="conversation", target="ben")
    with pytest.raises(ProtocolError, match="too long"):
        await channel.send("x" * 2_000_000)
    await channel.send("short")


async def test_unknown_questions_are_refused(server: WebSocketServer) -> None:
    """An operation that does not exist, or lacks something, is refused by name."""
    socket = await hello(server)
    assert "no operation 'drop_tables'" in (await asked(socket, "drop_tables"))["message"]
    socket = await hello(server)
    message = (await asked(socket, "get_channel"))["message"]
    assert message == "get_channel: channel_id: Field required"
    await socket.close()


async def scene(here: HubClient) -> tuple[Any, Any, Any]:
    """A channel of two people here."""
    anna = await here.register_human(Passport(name="anna"))
    ben = await here.register_human(Passport(name="ben"))
    return anna, ben, await anna.open(type="conversation", target="ben")


async def test_sender_is_the_connection_s_own(here: HubClient, server: WebSocketServer) -> None:
    """Speaking as somebody whom the connection has not registered is refused, nothing written."""
    anna, _, channel = await scene(here)
    before = len(await here.read_wal(channel.channel_id))
    socket = await hello(server)
    forged = Envelope(channel.channel_id, anna.agent_id, None, EV_TEXT, {"text": "pay"})
    answer = await asked(socket, "post_envelope", envelope=forged.to_dict(), adopted=[])
    assert answer["error"] == "access-denied"
    assert "no one yet" in answer["message"]
    assert len(await here.read_wal(channel.channel_id)) == before
    await socket.close()


async def test_channels_of_others_are_not_there(here: HubClient, there: HubClient) -> None:
    """A channel that none of the connection's participants is in cannot be read or closed."""
    _, _, channel = await scene(here)
    await there.register_human(Passport(name="cid"))
    for question in (
        there.get_channel(channel.channel_id),
        there.read_wal(channel.channel_id),
        there.adapter_state(channel.channel_id),
        there.close_channel(channel.channel_id, reason="mine now"),
    ):
        with pytest.raises(NotFoundError, match="there is no channel"):
            await question
    assert await there.list_channels() == []


async def test_hidden_messages_do_not_cross(here: HubClient, there: HubClient) -> None:
    """What is not for the connection's participants is blanked out in the log, in its place."""
    anna = await here.register_human(Passport(name="anna"))
    ben = await here.register_human(Passport(name="ben"))
    await there.register_human(Passport(name="cid"))
    channel = await anna.open(type="discussion", target=["ben", "cid"])
    await channel.send("secret", audience=[ben.agent_id])
    whole = await here.read_wal(channel.channel_id)
    blanked = await there.read_wal(channel.channel_id)
    assert len(whole) == len(blanked)
    assert [whole[-1].event_data, blanked[-1].event_data] == [{"text": "secret"}, {}]


async def test_rules_are_not_loosened_over_a_wire(hub: Hub, there: HubClient) -> None:
    """Whom a rule binds can change it neither by asking nor by registering anew."""
    tight = Rule(limits=LimitsBlock(max_concurrent_channels=1))
    made = await hub.register_identity(Passport(name="bot"), Resume(), tight)
    bot = await there.register(echo, Passport(name="bot"), rule=Rule(), attach_plugin=False)
    assert await hub.get_rule(made.agent_id or "") == tight
    with pytest.raises(AccessDeniedError, match="set where the hub runs"):
        await bot.set_rule(Rule())


async def test_connected_name_is_taken_over_no_wire(here: HubClient, there: HubClient) -> None:
    """A name that is connected here cannot be registered from elsewhere."""
    await here.register(echo, Passport(name="bot"), attach_plugin=False)
    with pytest.raises(ProtocolError, match="bot is already registered and connected"):
        await there.register(echo, Passport(name="bot"), attach_plugin=False)


async def test_turns_of_others_cannot_be_ended(here: HubClient, there: HubClient) -> None:
    """A connection ends only the rounds that it was given."""
    from agent_adapter.network import TurnRef
    from agent_adapter.network.links.remote_hub import RemoteHub

    await there.register_human(Passport(name="cid"))
    far = await there.hub_like()
    assert isinstance(far, RemoteHub)
    ref = TurnRef(turn_id="trn_1", channel_id="ch", attempt=1, owner_id="")
    with pytest.raises(StaleTurn, match="not under way here"):
        await far.end_silent_turn(ref)


async def test_words_from_elsewhere_mark_the_channel(
    hub: Hub, here: HubClient, server: WebSocketServer
) -> None:
    """What an untrusted participant says leaves a mark on the channel; a trusted one's does not."""
    await here.register_human(Passport(name="anna"))
    async with (
        serve(hub, trusted=["ben"]) as other,
        joined(server.url) as far,
        joined(other.url) as near,
    ):
        found = []
        for client, name in ((far, "cid"), (near, "ben")):
            person = await client.register_human(Passport(name=name))
            channel = await person.open(type="conversation", target="anna")
            await channel.send("hello")
            scope = conversation_key("", channel.channel_id)
            found.append(await hub.store.read(lambda tx, scope=scope: labels(tx, [scope])))
    assert found == [("remote participant cid",), ()]


# --- a wire that is cut ---------------------------------------------------------------------------


async def test_messages_are_caught_up_on(hub: Hub, here: HubClient) -> None:
    """What was said while the wire was cut comes afterwards, once and in order."""
    ben = await here.register_human(Passport(name="ben"))
    async with (
        serve(hub, grace=5.0) as server,
        relay(server.port) as wire,
        joined(wire.url) as there,
    ):
        anna = await there.register_human(Passport(name="anna"))
        channel = await anna.open(type="conversation", target="ben")
        await ben.send(channel.channel_id, "one")
        await anna.next_envelope(predicate=is_text, timeout=60)
        wire.cut()
        for text in ("two", "three"):
            await ben.send(channel.channel_id, text)
        other = await ben.open(type="conversation", target="anna")
        await ben.send(other.channel_id, "four")
        found = [await anna.next_envelope(predicate=is_text, timeout=60) for _ in range(3)]
        assert [item.event_data["text"] for item in found] == ["two", "three", "four"]
        assert wire.connections == 2


async def test_question_is_answered_once_over_a_cut(hub: Hub, here: HubClient) -> None:
    """A message whose acceptance was lost on the wire is accepted once."""
    ben = await here.register_human(Passport(name="ben"))
    async with (
        serve(hub, grace=5.0) as server,
        relay(server.port) as wire,
        joined(wire.url) as there,
    ):
        anna = await there.register_human(Passport(name="anna"))
        channel = await anna.open(type="conversation", target="ben")
        cut = asyncio.Event()

        async def cut_it(envelope: Envelope) -> None:
            if is_text(envelope) and not cut.is_set():
                cut.set()
                wire.cut()

        ben.on_envelope(cut_it)
        sending = asyncio.create_task(channel.send("hello"))
        await cut.wait()
        await sending
        log = await here.read_wal(channel.channel_id)
        assert sum(map(is_text, log)) == 1


async def test_round_goes_on_over_a_cut(hub: Hub, here: HubClient) -> None:
    """A round under way when the wire is cut is not run again: its packet comes afterwards."""
    runs: list[int] = []
    anna = await here.register_human(Passport(name="anna"))
    async with (
        serve(hub, grace=5.0) as server,
        relay(server.port) as wire,
        joined(wire.url) as there,
    ):

        async def slow(turn: Turn) -> str:
            runs.append(turn.attempt)
            wire.cut()
            while wire.connections < 2:
                await asyncio.sleep(0.01)
            return "done"

        await there.register(slow, Passport(name="bot"), attach_plugin=False)
        channel = await anna.open(type="consulting", target="bot")
        await channel.send("hello")
        answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert (runs, answer.event_data["text"]) == ([1], "done")


async def test_a_turn_that_a_handler_takes_goes_on_over_a_cut(hub: Hub, here: HubClient) -> None:
    """Its round is run once, and the handler goes on when it has ended."""
    runs: list[int] = []
    anna = await here.register_human(Passport(name="anna"))
    async with (
        serve(hub, grace=5.0) as server,
        relay(server.port) as wire,
        joined(wire.url) as there,
    ):

        async def slow(turn: Turn) -> str:
            runs.append(turn.attempt)
            wire.cut()
            while wire.connections < 2:
                await asyncio.sleep(0.01)
            return "done"

        bot = await there.register(slow, Passport(name="bot"), attach_plugin=False)
        ended = asyncio.Event()

        async def handle(envelope: Envelope) -> None:
            await default_handler(envelope, bot)
            if is_text(envelope):
                ended.set()

        bot.on_envelope(handle)
        channel = await anna.open(type="consulting", target="bot")
        await channel.send("hello")
        answer = await anna.next_envelope(predicate=is_text, timeout=60)
        async with asyncio.timeout(60):
            await ended.wait()
    assert len(runs) == 1 and answer.event_data["text"] == "done"


async def test_turn_that_was_lost_on_the_wire_comes_again(hub: Hub, here: HubClient) -> None:
    """A turn that was given while the wire was cut is run when the process is back."""
    anna = await here.register_human(Passport(name="anna"))
    async with (
        serve(hub, grace=5.0) as server,
        relay(server.port) as wire,
        joined(wire.url) as there,
    ):
        await there.register(echo, Passport(name="bot"), attach_plugin=False)
        channel = await anna.open(type="consulting", target="bot")
        wire.cut()
        await channel.send("hello")
        answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert answer.event_data["text"] == "heard hello"


async def test_round_of_a_process_that_is_gone_is_given_back(hub: Hub, here: HubClient) -> None:
    """When a process does not come back, whoever registers its name next runs the turn."""
    anna = await here.register_human(Passport(name="anna"))
    async with serve(hub, grace=0.05) as server:
        begun = asyncio.Event()

        async def hang(turn: Turn) -> str:
            begun.set()
            await asyncio.Event().wait()
            return "never"

        async with relay(server.port) as wire, joined(wire.url) as there:
            await there.register(hang, Passport(name="bot"), attach_plugin=False)
            channel = await anna.open(type="consulting", target="bot")
            await channel.send("hello")
            await begun.wait()
            wire.closed = True
            wire.cut()
            while hub.is_connected((await hub.get_agent("bot")).agent_id or ""):
                await asyncio.sleep(0.01)
            await here.register(echo, Passport(name="bot"), attach_plugin=False)
            answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert answer.event_data["text"] == "heard hello"


async def test_hub_that_is_gone_is_given_up(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """When the hub cannot be reached any more, whoever waits for it is told so."""
    caplog.set_level(logging.CRITICAL)
    async with (
        serve(hub, grace=0.05) as server,
        relay(server.port) as wire,
        joined(wire.url, reconnect_for=0.3) as there,
    ):
        anna = await there.register_human(Passport(name="anna"))
        wire.closed = True
        wire.cut()
        with pytest.raises(NetworkError, match="is disconnected"):
            await anna.next_envelope(timeout=60)
        with pytest.raises(NetworkError, match="anna has lost its hub"):
            await anna.open(type="conversation", target="ben")


async def test_closing_hangs_up(hub: Hub, here: HubClient, server: WebSocketServer) -> None:
    """After `close` the participant is not connected any more, and its name is free to return."""
    there = HubClient(WebSocketLink(server.url))
    bot = await there.register(echo, Passport(name="bot"), attach_plugin=False)
    await there.close()
    assert not hub.is_connected(bot.agent_id)
    again = await here.register(echo, Passport(name="bot"), attach_plugin=False)
    assert again.agent_id == bot.agent_id


async def test_far_participant_unregisters(hub: Hub, there: HubClient) -> None:
    """A participant at the other end takes itself off the hub."""
    bot = await there.register(echo, Passport(name="bot"), attach_plugin=False)
    await bot.unregister()
    assert hub.find_agent_id("bot") is None


async def test_large_state_crosses_the_wire(here: HubClient, there: HubClient) -> None:
    """A turn whose channel has many variables is longer than a piece, and arrives."""
    anna = await here.register_human(Passport(name="anna"))
    bot = await there.register(echo, Passport(name="bot"), attach_plugin=False)
    graph = TransitionGraph.sequence([anna.agent_id, bot.agent_id])
    variables = {f"v{n}": "\u0000" * (VALUE_LIMIT // 7) for n in range(4)}
    channel = await anna.open(
        type="workflow", target="bot", knobs={"graph": graph.to_dict(), "context_vars": variables}
    )
    await channel.send("y" * 400_000)
    await anna.next_envelope(predicate=is_closed, timeout=60)
    packet = (await here.read_wal(channel.channel_id))[-2]
    assert len(packet.event_data["body"]) > 400_000
