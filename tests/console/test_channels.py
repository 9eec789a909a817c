"""Channels in the console: what was said, whose turn it is, and a person's word through the hub."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent_adapter.flow.envelope import EV_CONTEXT_SET, Envelope
from agent_adapter.store.sqlite import SqliteStore
from tests.console._answers import undescribed
from tests.console._shop import ShopConsole, field
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio

NASTY = "<script>alert(1)</script>\u202etxt"


class Room:
    """A channel of ana, bob and an agent, and the console over the hub's store."""

    def __init__(self, at: Scene, shop: ShopConsole, channel: Any) -> None:
        self.at = at
        self.shop = shop
        self.channel = channel
        self.path = f"/channels/{channel.channel_id}"

    async def browser(self, name: str = "ana", role: str = "approver") -> Any:
        """Somebody who is signed in."""
        return await self.shop.browser(name, role)


@pytest.fixture
async def room(store: SqliteStore) -> AsyncIterator[Room]:
    """The channel goes round: ana, bob, the agent."""
    async with scene(store) as at:
        await at.person("ana")
        await at.person("bob")
        await at.agent("echo", lambda text: f"echo {text}")
        ids = at.names("ana", "bob", "echo")
        channel = await at.open("ana", ["bob", "echo"], TransitionGraph.round_robin(ids))
        yield Room(at, ShopConsole(store), channel)


async def test_a_person_speaks_through_the_hub(room: Room) -> None:
    """The command is queued, done by the hub, and its end is shown."""
    ana = await room.browser()
    answer = ana.post(f"{room.path}/speak", {"sender": "ana", "text": "hello\r\nthere"})
    assert answer.status_code == 303
    assert "queued" in ana.get(answer.headers["location"]).text
    await room.at.settle()
    text = ana.get(answer.headers["location"]).text
    assert "hello\nthere" in text and "done" in text
    rows = await room.shop.store.read(lambda tx: tx.select("commands"))
    assert rows[0]["by"] == "token:ana"


async def test_out_of_turn_is_refused_with_the_reason(room: Room) -> None:
    """As it is for everybody."""
    bob = await room.browser("bob")
    answer = bob.post(f"{room.path}/speak", {"sender": "bob", "text": "me!"})
    await room.at.settle()
    assert "expects ana" in bob.get(answer.headers["location"]).text


@pytest.mark.parametrize(
    ("name", "role", "sender", "status"),
    [
        ("ana", "approver", "ana", 303),
        ("ana", "approver", "bob", 403),
        ("kim", "approver", "ana", 403),
        ("kim", "admin", "ana", 303),
        ("kim", "admin", "echo", 403),
        ("ana", "viewer", "ana", 403),
    ],
)
async def test_who_may_speak_for_whom(
    room: Room, name: str, role: str, sender: str, status: int
) -> None:
    """An approver as themselves, an admin as any person, nobody as an agent."""
    browser = await room.browser(name, role)
    answer = browser.post(f"{room.path}/speak", {"sender": sender, "text": "hi"})
    assert answer.status_code == status


async def test_the_form_sent_twice_with_one_key_speaks_once(room: Room) -> None:
    """A double click is one message."""
    ana = await room.browser()
    for _ in range(2):
        ana.post(f"{room.path}/speak", {"sender": "ana", "text": "once", "key": "k1"})
    await room.at.settle()
    assert [said for _, said in await room.at.said(room.channel)].count("once") == 1


async def test_a_stale_page_answers_no_other_turn(room: Room) -> None:
    """D12: its text is taken for no answer to the next question; that is said, and it is kept."""
    ana = await room.browser()
    page = ana.get(room.path).text
    form = {name: field(page, name) for name in ("turn", "key")} | {"sender": "ana"}
    ana.post(f"{room.path}/speak", form | {"text": "first"})
    await room.at.settle()
    await room.at.people["bob"].send(room.channel.channel_id, "next question")
    await room.at.settle()
    for text in ("second <text>", "third"):
        answer = ana.post(f"{room.path}/speak", form | {"text": text})
        assert answer.status_code == 409 and "has moved on" in answer.text
        assert html.escape(text) in answer.text.partition("<textarea")[2]
    await room.at.settle()
    said = [text for _, text in await room.at.said(room.channel)]
    assert said == ["first", "next question", "echo [bob]: next question"]
    fresh = field(ana.get(room.path).text, "turn")
    answer = ana.post(f"{room.path}/speak", form | {"turn": fresh, "text": "third"})
    assert answer.status_code == 303
    await room.at.settle()
    assert "third" in [text for _, text in await room.at.said(room.channel)]


async def test_a_turn_that_passes_while_a_text_waits_is_not_answered(room: Room) -> None:
    """D12: the hub refuses the text, and the page gives it back to whoever wrote it."""
    ana = await room.browser()
    page = ana.get(room.path).text
    form = {name: field(page, name) for name in ("turn", "key")} | {"sender": "ana"}
    first, late = (ana.post(f"{room.path}/speak", form | {"text": each}) for each in ("one", "two"))
    assert (first.status_code, late.status_code) == (303, 303)
    await room.at.settle()
    text = ana.get(late.headers["location"]).text
    assert "refused" in text and "has passed" in text
    assert "two" in [said.strip() for said in re.findall(r">([^<]*)</(?:textarea|pre)>", text)]
    assert [said for _, said in await room.at.said(room.channel)].count("two") == 0
    bob = (await room.browser("bob")).get(late.headers["location"]).text
    assert not re.search(r">two</(?:textarea|pre)>", bob)


async def test_a_page_of_somebody_elses_turn_answers_none_of_one_s_own(room: Room) -> None:
    """D12: what was written while ana was expected is no answer to what bob is asked later."""
    bob = await room.browser("bob")
    page = bob.get(room.path).text
    await room.at.people["ana"].send(room.channel.channel_id, "question for bob")
    await room.at.settle()
    sent = {"sender": "bob", "text": "early", "turn": field(page, "turn"), "key": "k"}
    assert bob.post(f"{room.path}/speak", sent).status_code == 409


async def test_the_graph_is_drawn_with_the_current_speaker_lit(room: Room) -> None:
    """As SVG in the page, with the rules in words beside it."""
    ana = await room.browser()
    lit = r'<g class="node speaker current"><title>ana</title>'
    text = ana.get(room.path).text
    assert re.search(lit, text) and "<svg" in text and "Rules as text" in text
    ana.post(f"{room.path}/speak", {"sender": "ana", "text": "hi"})
    await room.at.settle()
    assert not re.search(lit, ana.get(room.path).text)


async def test_what_was_said_is_inert(room: Room) -> None:
    """Escaped, and what is invisible is written out."""
    ana = await room.browser()
    ana.post(f"{room.path}/speak", {"sender": "ana", "text": NASTY})
    await room.at.settle()
    for path in (room.path, f"{room.path}/entries?since=0", f"{room.path}/earlier?before=99"):
        text = ana.get(path).text
        assert "<script>alert" not in text and "\u202e" not in text, path
        assert "\\u202etxt" in text, path


async def test_an_open_page_fetches_what_is_new(room: Room) -> None:
    """Entries after the last that it has."""
    ana = await room.browser()
    last = int(re.search(r'data-last="(\d+)"', ana.get(room.path).text)[1])  # type: ignore[index]  # it is there
    assert ana.get(f"{room.path}/entries?since={last}").text.strip() == ""
    ana.post(f"{room.path}/speak", {"sender": "ana", "text": "news"})
    await room.at.settle()
    assert "news" in ana.get(f"{room.path}/entries?since={last}").text


async def test_an_admin_forks_a_channel_and_lets_it_go_on(room: Room) -> None:
    """The fork is paused until then, and its parent is named."""
    ada = await room.browser("ada", "admin")
    ada.post(f"{room.path}/speak", {"sender": "ana", "text": "hi"})
    await room.at.settle()
    at = (await room.at.log(room.channel))[-1].envelope_id
    answer = ada.post(f"{room.path}/fork", {"at": at})
    await room.at.settle()
    made = re.search(r'href="(/channels/chn_[^"]+)">chn_', ada.get(answer.headers["location"]).text)
    assert made is not None
    assert "paused" in ada.get(made[1]).text and room.channel.channel_id in ada.get(made[1]).text
    ada.post(f"{made[1]}/resume", {})
    await room.at.settle()
    assert ">paused<" not in ada.get(made[1]).text


async def test_a_store_without_a_hub_says_so(store: SqliteStore) -> None:
    """What is asked for waits until there is one."""
    async with scene(store) as at:
        await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph.round_robin(at.names("ana", "bob"))
        channel = await at.open("ana", ["bob"], graph)
    ana = await ShopConsole(store).browser("ana")
    path = f"/channels/{channel.channel_id}"
    assert "No hub serves this store now" in ana.get(path).text
    answer = ana.post(f"{path}/speak", {"sender": "ana", "text": "later"})
    assert "The command waits for one" in ana.get(answer.headers["location"]).text


async def test_channels_are_listed(room: Room) -> None:
    """With whose turn it is."""
    text = (await room.browser()).get("/channels").text
    assert room.channel.channel_id in text and "ana, bob, echo" in text


async def test_answers_about_channels_are_as_the_document_describes_them(room: Room) -> None:
    """The channel, its log, and a command with its result."""
    headers = {"authorization": f"Bearer {await room.shop.token('ana', 'approver')}"}
    client, id = room.shop.client(), room.channel.channel_id
    asked = client.post(
        f"/api/v1/channels/{id}/speak", json={"sender": "ana", "text": "hi"}, headers=headers
    ).json()
    assert undescribed("POST", "/channels/{id}/speak", asked) == []
    await room.at.settle()
    for path, value in {
        "/channels": "",
        "/channels/{id}": id,
        "/channels/{id}/log": id,
        "/commands/{id}": asked["command"],
    }.items():
        answer = client.get("/api/v1" + path.format(id=value), headers=headers)
        assert answer.status_code == 200, (path, answer.text)
        assert undescribed("GET", path, answer.json()) == [], path


async def test_a_channel_reads_as_people_write(room: Room) -> None:
    """What belongs to the protocol is folded away, and the newest can come first."""
    await room.at.people["ana"].send(room.channel.channel_id, "hello\nthere")
    await room.at.settle()
    ana = await room.browser()
    text = ana.get(room.path).text
    assert len(re.findall(r'<li class="entry protocol">', text)) == 1
    assert re.search(r"\d protocol entries: channel.invite", text)
    newest = ana.get(f"{room.path}?order=newest").text
    assert newest.index("hello\nthere") < newest.index("protocol entries")
    assert text.index("protocol entries") < text.index("hello\nthere")


async def test_a_channel_says_whose_turn_it_is_and_why_it_waits(room: Room) -> None:
    """In words, with the calls of the turn."""
    text = (await room.browser()).get(room.path).text
    assert "waits for a message of ana" in text
    turn = field(text, "turn")
    assert f'href="/runs/{turn}"' in text


async def test_variables_say_who_set_them(room: Room) -> None:
    """And with which entry."""
    data = {"set": {"colour": "red"}}
    change = Envelope(room.channel.channel_id, room.at.id("ana"), None, EV_CONTEXT_SET, data)
    await room.at.people["ana"].send_envelope(change)
    await room.at.settle()
    text = (await room.browser()).get(room.path).text
    row = re.search(r"<tr><td>colour</td>.*?</tr>", text, re.DOTALL)
    assert row is not None and "red" in row[0] and "ana" in row[0] and "entry" in row[0]


async def test_a_transcript_is_searched(room: Room) -> None:
    """By a part of a text, in any case."""
    await room.at.people["ana"].send(room.channel.channel_id, "the Grüße are late")
    await room.at.settle()
    ana = await room.browser()
    assert "are late" in ana.get(f"{room.path}/search", params={"q": "GRÜSSE"}).text
    assert "are late" not in ana.get(f"{room.path}/search?q=nothing").text


async def test_the_path_that_was_taken_is_drawn(room: Room) -> None:
    """Who has spoken, in the graph."""
    await room.at.people["ana"].send(room.channel.channel_id, "hi")
    await room.at.settle()
    text = (await room.browser()).get(room.path).text
    assert 'class="node speaker spoke"><title>ana</title>' in text


async def test_a_log_is_replayed(room: Room) -> None:
    """And compared with what the store holds."""
    text = (await room.browser()).get(f"{room.path}/replay").text
    assert 'data-replay="equal"' in text
