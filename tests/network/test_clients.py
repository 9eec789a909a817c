"""What a program holds of a network: registration, channels, waiting, people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent_adapter.core.errors import (
    AccessDeniedError,
    InboxFull,
    NetworkError,
    NotFoundError,
    ProtocolError,
    StaleTurn,
)
from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_INVITE,
    EV_CONTEXT_SET,
    EV_TEXT,
    AccessBlock,
    AgentClient,
    Channel,
    Envelope,
    Hub,
    HubClient,
    HumanClient,
    InboxBlock,
    LimitsBlock,
    LocalLink,
    Passport,
    RateBlock,
    Resume,
    ResumeExample,
    Rule,
    Turn,
)
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    """A hub over memory, without sweepers."""
    async with await Hub.open(
        MemoryStore(), ttl_sweep_interval=0, expectation_sweep_interval=0, invite_ack_timeout=2.0
    ) as opened:
        yield opened


@pytest.fixture
async def client(hub: Hub) -> AsyncIterator[HubClient]:
    """A client of that hub."""
    async with HubClient(LocalLink(hub)) as made:
        yield made


def is_text(envelope: Envelope) -> bool:
    """Whether it is a text."""
    return envelope.event_type == EV_TEXT


def is_closed(envelope: Envelope) -> bool:
    """Whether it ends the channel."""
    return envelope.event_type == EV_CHANNEL_CLOSED


async def echo(text: str) -> str:
    """Answers with what it has heard."""
    return f"heard {text}"


async def agent(client: HubClient, name: str, function: Any = echo, **more: Any) -> AgentClient:
    """A function as a participant."""
    return await client.register(function, Passport(name=name), attach_plugin=False, **more)


async def person(client: HubClient, name: str, **more: Any) -> HumanClient:
    """A person as a participant."""
    return await client.register_human(Passport(name=name), **more)


async def talk(client: HubClient, **more: Any) -> tuple[HumanClient, HumanClient, Channel]:
    """A conversation of two people."""
    anna, ben = await person(client, "anna", **more), await person(client, "ben")
    return anna, ben, await anna.open(type="conversation", target="ben")


# --- registration ---------------------------------------------------------------------------------


async def test_people_are_not_registered_as_agents(client: HubClient) -> None:
    """`register` refuses a person and names `register_human`."""
    with pytest.raises(ValueError, match="register_human"):
        await client.register(echo, Passport(name="anna", kind="human"))


async def test_agents_are_not_registered_as_people(client: HubClient) -> None:
    """`register_human` refuses an agent and names `register`."""
    with pytest.raises(ValueError, match=r"register\(agent, passport\)"):
        await client.register_human(Passport(name="bot", kind="agent"))


async def test_what_nobody_can_run_is_refused(client: HubClient) -> None:
    """Something that is neither an agent nor a function cannot take part."""
    with pytest.raises(NetworkError, match="cannot take part"):
        await client.register(object(), Passport(name="thing"))


async def test_connected_name_is_taken(client: HubClient) -> None:
    """A name that is connected cannot be registered again."""
    await agent(client, "bot")
    with pytest.raises(ProtocolError, match="bot is already registered and connected"):
        await agent(client, "bot")


async def test_name_that_is_not_connected_comes_back(client: HubClient) -> None:
    """After disconnecting, the same name gets the same id again."""
    first = await agent(client, "bot")
    await first.disconnect()
    assert (await agent(client, "bot")).agent_id == first.agent_id


async def test_unregistered_name_is_new(client: HubClient) -> None:
    """After unregistering, the same name is somebody else."""
    first = await agent(client, "bot")
    await first.unregister()
    assert (await agent(client, "bot")).agent_id != first.agent_id


async def test_plugin_gives_five_tools(client: HubClient) -> None:
    """A participant has the network's tools unless it is registered without them."""
    bot = await client.register(echo, Passport(name="bot"))
    names = {tool.name for tool in bot.tools}
    assert names == {"peers", "channels", "tasks", "context", "delegate"}


async def test_two_hubs_in_one_client_are_a_mistake(hub: Hub) -> None:
    """A client whose link leads to another hub than the one given is refused."""
    async with await Hub.open(MemoryStore(), ttl_sweep_interval=0) as other:
        with pytest.raises(ValueError, match="another hub"):
            HubClient(LocalLink(hub), hub=other)


async def test_resume_can_be_said_anew(client: HubClient) -> None:
    """What a participant says about itself is what others read."""
    bot = await agent(client, "bot")
    await bot.set_resume(Resume(summary="refunds"))
    await bot.add_example(ResumeExample("a case"))
    read = await client.get_resume(bot.agent_id)
    assert (read.summary, [item.title for item in read.examples]) == ("refunds", ["a case"])


async def test_closed_client_says_so(hub: Hub) -> None:
    """After `close` neither the client nor its participants can be used, and the error says so."""
    client = HubClient(LocalLink(hub))
    bot = await agent(client, "bot")
    await client.close()
    with pytest.raises(NetworkError, match="closed"):
        await client.get_agent("bot")
    with pytest.raises(NetworkError, match="bot is disconnected"):
        await bot.open(type="conversation", target="bot")


# --- channels -------------------------------------------------------------------------------------


async def test_targets_are_names_or_ids(client: HubClient) -> None:
    """A channel is opened with participants by name or by id."""
    anna, ben = await person(client, "anna"), await person(client, "ben")
    cid = await person(client, "cid")
    channel = await anna.open(type="discussion", target=["ben", cid.agent_id])
    assert channel.metadata.participant_ids() == [anna.agent_id, ben.agent_id, cid.agent_id]


async def test_unknown_target_lists_who_there_is(client: HubClient) -> None:
    """A target that is not registered is refused with those that are."""
    anna = await person(client, "anna")
    with pytest.raises(NotFoundError, match=r"'zed'.*anna"):
        await anna.open(type="conversation", target="zed")


async def test_agent_answers_in_its_turn(client: HubClient) -> None:
    """What is said to an agent in a conversation it answers."""
    anna, _ = await person(client, "anna"), await agent(client, "bot")
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    answer = await anna.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=is_text, timeout=60
    )
    assert answer.event_data["text"] == "heard hello"


async def test_info_renews_the_snapshot(client: HubClient) -> None:
    """`metadata` is as it was; `info` asks again."""
    anna, ben, channel = await talk(client)
    await (await ben.channel(channel.channel_id)).close("enough")
    assert not channel.is_terminal()
    assert (await channel.info()).close_reason == "enough"
    assert channel.is_terminal()
    assert anna.connected


async def test_stranger_gets_no_hold_of_a_channel(client: HubClient) -> None:
    """Who takes no part in a channel does not get to hold it."""
    _, _, channel = await talk(client)
    with pytest.raises(NotFoundError, match="that cid is in"):
        await (await person(client, "cid")).channel(channel.channel_id)


async def test_nobody_sends_as_somebody_else(client: HubClient) -> None:
    """A forged sender is refused before it leaves the client, and nothing is written."""
    anna, ben, channel = await talk(client)
    forged = Envelope(channel.channel_id, ben.agent_id, None, EV_TEXT, {"text": "I agree"})
    before = len(await client.read_wal(channel.channel_id))
    with pytest.raises(ProtocolError, match=f"anna .* cannot send as '{ben.agent_id}'"):
        await anna.send_envelope(forged)
    assert len(await client.read_wal(channel.channel_id)) == before


async def test_empty_sender_is_filled_in(client: HubClient) -> None:
    """An envelope without a sender is the client's own."""
    anna, _, channel = await talk(client)
    await anna.post_envelope(Envelope(channel.channel_id, "", None, EV_TEXT, {"text": "hi"}))
    assert (await client.read_wal(channel.channel_id))[-1].sender_id == anna.agent_id


# --- refusals at the hub: nothing is written ------------------------------------------------------


async def refused(
    client: HubClient, channel: Channel, error: type[Exception], match: str, **send: Any
) -> None:
    """Sending is refused, and leaves the log as it was."""
    before = len(await client.read_wal(channel.channel_id))
    with pytest.raises(error, match=match):
        await channel.send(**({"content": "hello"} | send))
    assert len(await client.read_wal(channel.channel_id)) == before


async def test_out_of_turn_names_who_is_expected(client: HubClient) -> None:
    """A text out of turn is refused with who was expected."""
    anna, ben = await person(client, "anna"), await person(client, "ben")
    opened = await anna.open(type="discussion", target="ben")
    held = await ben.channel(opened.channel_id)
    await refused(client, held, ProtocolError, f"expects anna .{anna.agent_id}. to speak, not ben")


async def test_closed_channel_takes_nothing(client: HubClient) -> None:
    """A text to a channel that has ended is refused with why it ended."""
    _, _, channel = await talk(client)
    await channel.close("enough")
    await refused(client, channel, ProtocolError, "closed .enough.")


async def test_oversized_message_is_refused(client: HubClient) -> None:
    """A message beyond the limit is refused with both sizes."""
    _, _, channel = await talk(client)
    await refused(client, channel, ProtocolError, "bytes of JSON", content="x" * 600_000)


async def test_malformed_message_is_refused(client: HubClient) -> None:
    """A message that is not as its event should be is refused with what is wrong."""
    _, _, channel = await talk(client)
    await refused(client, channel, ProtocolError, "a text", event_data={"txt": "hello"})


async def test_stranger_in_the_audience_is_refused(client: HubClient) -> None:
    """An audience of somebody who takes no part is refused."""
    _, _, channel = await talk(client)
    await refused(client, channel, ProtocolError, "the audience has 'x'", audience=["x"])


async def test_variables_only_in_workflows(client: HubClient) -> None:
    """A conversation has no variables to set."""
    _, _, channel = await talk(client)
    change = {"event_type": EV_CONTEXT_SET, "event_data": {"set": {"a": 1}}}
    await refused(client, channel, ProtocolError, "only a 'workflow'", **change)


async def test_rate_is_enforced_at_the_hub(client: HubClient) -> None:
    """Who sends faster than its rule allows is refused until its time has come."""
    rule = Rule(limits=LimitsBlock(rate=RateBlock(per_minute=1, burst=2)))
    _, _, channel = await talk(client, rule=rule)
    await channel.send("one")
    await refused(client, channel, AccessDeniedError, "1 messages a minute")


async def test_access_is_enforced_at_the_hub(client: HubClient) -> None:
    """A rule that is tightened while a channel runs holds for the next message."""
    anna, _, channel = await talk(client)
    await anna.set_rule(Rule(access=AccessBlock(outbound_to=["cid"])))
    await refused(client, channel, AccessDeniedError, "anna may not speak to ben")


async def test_delegation_depth_is_enforced_at_the_hub(client: HubClient) -> None:
    """A message that is delegated too deeply is refused."""
    _, _, channel = await talk(client)
    await refused(client, channel, AccessDeniedError, "6 deep", depth=6)


async def test_full_inbox_is_enforced_at_the_hub(client: HubClient) -> None:
    """Who does not take its messages is sent no more than its rule allows."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=2)))
    slow = await person(client, "slow", rule=rule)
    stuck, go_on = asyncio.Event(), asyncio.Event()

    async def hang(envelope: Envelope) -> None:
        if is_text(envelope):
            stuck.set()
            await go_on.wait()

    slow.on_envelope(hang)
    anna = await person(client, "anna")
    channel = await anna.open(type="conversation", target="slow")
    await channel.send("one")
    await stuck.wait()
    await channel.send("two")
    await channel.send("three")
    await refused(client, channel, InboxFull, "2 messages wait for slow")
    go_on.set()


# --- waiting --------------------------------------------------------------------------------------


async def test_waiting_looks_back(client: HubClient) -> None:
    """An event that came before somebody waited for it is found."""
    anna, ben, channel = await talk(client)
    await ben.send(channel.channel_id, "early")
    for _ in range(2):
        found = await anna.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_text, timeout=60
        )
        assert found.event_data["text"] == "early"


async def test_waiters_do_not_steal_from_each_other(client: HubClient) -> None:
    """Two who wait for the same event both get it."""
    anna, ben, channel = await talk(client)
    waiting = [
        asyncio.create_task(
            anna.wait_for_channel_event(
                channel_id=channel.channel_id, predicate=is_text, timeout=60
            )
        )
        for _ in range(2)
    ]
    await asyncio.sleep(0)
    await ben.send(channel.channel_id, "both")
    assert [item.event_data["text"] for item in await asyncio.gather(*waiting)] == ["both"] * 2


async def test_own_words_are_not_waited_for(client: HubClient) -> None:
    """What one says oneself is not the event that one waits for."""
    anna, ben, channel = await talk(client)
    await channel.send("mine")
    await ben.send(channel.channel_id, "theirs")
    found = await anna.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=is_text, timeout=60
    )
    assert found.event_data["text"] == "theirs"


async def test_waiting_ends_in_time(client: HubClient) -> None:
    """An event that does not come ends the wait with a `TimeoutError`."""
    anna, _, channel = await talk(client)
    with pytest.raises(asyncio.TimeoutError):
        await anna.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_text, timeout=0.01
        )


async def test_ended_channel_is_not_waited_for(client: HubClient) -> None:
    """When the channel has ended without the event, the wait is over at once."""
    anna, _, channel = await talk(client)
    await channel.close("enough")
    with pytest.raises(asyncio.TimeoutError, match=r"has ended \(enough\) without such"):
        await anna.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_text, timeout=60
        )


async def test_hidden_events_are_not_waited_for(client: HubClient) -> None:
    """A message for others is nobody else's event."""
    anna, ben = await person(client, "anna"), await person(client, "ben")
    cid = await person(client, "cid")
    channel = await anna.open(type="discussion", target=["ben", "cid"])
    await channel.send("psst", audience=[ben.agent_id])
    with pytest.raises(asyncio.TimeoutError):
        await cid.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_text, timeout=0.01
        )


async def test_strangers_wait_for_nothing(client: HubClient) -> None:
    """A channel that one is not in has nothing to wait for."""
    _, _, channel = await talk(client)
    cid = await person(client, "cid")
    with pytest.raises(NotFoundError):
        await cid.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_text, timeout=60
        )


async def test_disconnecting_ends_a_wait(client: HubClient) -> None:
    """Who disconnects while waiting is told so."""
    anna, _, channel = await talk(client)
    waiting = asyncio.create_task(
        anna.wait_for_channel_event(channel_id=channel.channel_id, predicate=is_text, timeout=60)
    )
    await asyncio.sleep(0)
    await anna.disconnect()
    with pytest.raises(NetworkError, match="anna is disconnected"):
        await waiting


# --- people ---------------------------------------------------------------------------------------


async def test_person_pulls_what_has_come(client: HubClient) -> None:
    """Messages that came before somebody asked for them are there."""
    _, ben, channel = await talk(client)
    await channel.send("one")
    await channel.send("two")
    found = [await ben.next_envelope(predicate=is_text, timeout=60) for _ in range(2)]
    assert [item.event_data["text"] for item in found] == ["one", "two"]


async def test_person_is_pushed_what_comes(client: HubClient) -> None:
    """Each callback gets each message; one that fails hurts neither the others nor the channel."""
    _, ben, channel = await talk(client)
    got: list[str] = []

    async def broken(envelope: Envelope) -> None:
        raise RuntimeError("the page is gone")

    async def note(envelope: Envelope) -> None:
        got.append(envelope.event_type)

    ben.on_envelope(broken)
    ben.on_envelope(note)
    ben.remove_envelope_callback(broken)
    ben.on_envelope(broken)
    await channel.send("one")
    await channel.close()
    await ben.next_envelope(predicate=is_closed, timeout=60)
    await asyncio.sleep(0)
    assert EV_TEXT in got


async def test_stream_ends_with_the_connection(client: HubClient) -> None:
    """`envelopes` goes on until the person is disconnected."""
    _, ben, channel = await talk(client)
    await channel.send("one")
    seen = []
    async for envelope in ben.envelopes():
        seen.append(envelope.event_type)
        if envelope.event_type == EV_TEXT:
            await ben.disconnect()
    assert seen[-1] == EV_TEXT


async def test_message_sent_twice_is_one(client: HubClient) -> None:
    """The same message id gives the first acceptance, and one entry in the log."""
    anna, _, channel = await talk(client)
    ids = {await anna.send(channel.channel_id, "yes", message_id="m1") for _ in range(3)}
    log = await client.read_wal(channel.channel_id)
    assert (len(ids), sum(map(is_text, log))) == (1, 1)


async def test_answer_to_a_turn_that_has_passed(client: HubClient) -> None:
    """An answer that names its turn is refused once that turn has passed; nothing is written."""
    anna, ben = await person(client, "anna"), await person(client, "ben")
    channel = await anna.open(type="discussion", target="ben")
    await channel.send("your turn")
    [turn] = await ben.pending_turns()
    await ben.send(channel.channel_id, "first answer", turn_id=turn.turn_id)
    before = len(await client.read_wal(channel.channel_id))
    with pytest.raises(StaleTurn, match="has passed"):
        await ben.send(channel.channel_id, "second answer", turn_id=turn.turn_id)
    assert len(await client.read_wal(channel.channel_id)) == before


async def test_message_ids_are_each_sender_s_own(client: HubClient) -> None:
    """Two people may use the same message id."""
    anna, ben, channel = await talk(client)
    one = await anna.send(channel.channel_id, "yes", message_id="m1")
    assert await ben.send(channel.channel_id, "no", message_id="m1") != one


async def test_invitation_can_be_declined(client: HubClient) -> None:
    """Who answers invitations by hand may decline, and the opener reads that."""
    anna = await person(client, "anna")
    ben = await person(client, "ben", auto_ack_invites=False)

    async def decline(envelope: Envelope) -> None:
        if envelope.event_type == EV_CHANNEL_INVITE:
            await ben.reject_invite(envelope, "busy")

    ben.on_envelope(decline)
    with pytest.raises(ProtocolError, match="not opened"):
        await anna.open(type="conversation", target="ben")


async def test_invitation_can_be_accepted_by_hand(client: HubClient) -> None:
    """The channel opens when a person who answers by hand agrees."""
    anna = await person(client, "anna")
    ben = await person(client, "ben", auto_ack_invites=False)
    opening = asyncio.create_task(anna.open(type="conversation", target="ben"))
    invite = await ben.next_envelope(
        predicate=lambda e: e.event_type == EV_CHANNEL_INVITE, timeout=60
    )
    await ben.accept_invite(invite)
    assert (await opening).state == "active"


async def test_only_invitations_are_answered(client: HubClient) -> None:
    """Answering anything but an invitation is a mistake that is named."""
    _, ben, channel = await talk(client)
    await channel.send("come")
    text = await ben.next_envelope(predicate=is_text, timeout=60)
    with pytest.raises(ProtocolError, match="an invitation is"):
        await ben.accept_invite(text)


# --- agents ---------------------------------------------------------------------------------------


async def test_handler_takes_the_agent_s_place(client: HubClient) -> None:
    """With a handler of its own an agent is not run; the handler answers."""
    bot = await agent(client, "bot")
    got: list[str] = []

    async def handle(envelope: Envelope) -> None:
        if envelope.event_type == EV_CHANNEL_INVITE:
            await bot.accept_invite(envelope)
        if is_text(envelope):
            got.append(envelope.event_data["text"])
            await (await bot.channel(envelope.channel_id)).send("by hand")

    bot.on_envelope(handle)
    anna = await person(client, "anna")
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert (got, answer.event_data["text"]) == (["hello"], "by hand")


async def test_messages_out_of_a_turn_are_deeper(client: HubClient) -> None:
    """What an agent says in another channel during its turn counts as delegated."""
    depths: list[int] = []

    async def ask_around(turn: Turn) -> str:
        side = await turn.agent_client.open(type="conversation", target="ben")
        await side.send("a question")
        depths.append((await client.read_wal(side.channel_id))[-1].depth)
        return "asked"

    await agent(client, "bot", ask_around)
    anna, _ = await person(client, "anna"), await person(client, "ben")
    channel = await anna.open(type="consulting", target="bot")
    await channel.send("hello")
    await anna.next_envelope(predicate=is_text, timeout=60)
    assert depths == [1]


async def test_pending_turns_are_counted(client: HubClient) -> None:
    """An agent that is not connected has its turn waiting when it comes back."""
    bot = await agent(client, "bot")
    anna = await person(client, "anna")
    channel = await anna.open(type="consulting", target="bot")
    await bot.disconnect()
    await channel.send("hello")
    assert [turn.state for turn in await client.pending_turns_for(bot.agent_id)] == ["due"]
    await agent(client, "bot")
    answer = await anna.next_envelope(predicate=is_text, timeout=60)
    assert answer.event_data["text"] == "heard hello"
