"""What a speaker sees in a channel: the opening message, a view by name, a view of AG2."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network import (
    ChannelManifest,
    ConversationAdapter,
    FullTranscript,
    NamedWindowedSummary,
    TransitionGraph,
    ViewMessage,
    WindowedSummary,
)
from agent_adapter.network.channels.views import view_of
from tests.network._channels import said
from tests.network._scene import Scene, scene

pytestmark = pytest.mark.anyio

TASK = ("Write the report about the tides of the northern harbour. " * 40).strip()


async def _relay(at: Scene, turns: int, own: Any = None, **knobs: Any) -> list[list[str]]:
    """What the second of two agents sees in each of its turns, its input last."""
    seen: list[list[str]] = []

    async def drafter(turn: Any) -> str:
        return f"draft {turn.state().turn_count}"

    async def reviewer(turn: Any) -> str:
        seen.append([item.text for item in turn.messages] + [turn.input_text])
        return f"review {turn.state().turn_count}"

    await at.person("user")
    await at.agent("drafter", drafter)
    client = await at.agent("reviewer", reviewer)
    client.view = own
    graph = TransitionGraph.round_robin(at.names("user", "drafter", "reviewer"), max_turns=turns)
    graph.transitions[:0] = TransitionGraph.sequence(at.names("reviewer", "drafter")).transitions
    channel = await at.open("user", ["drafter", "reviewer"], graph, **knobs)
    await channel.send(TASK)
    await at.settle()
    assert await at.reason(channel) == "max_turns"
    return seen


async def test_an_agent_does_not_forget_its_task() -> None:
    """N10: the channel's opening message stays in view, however many rounds there were."""
    async with scene() as at:
        seen = await _relay(at, 21)
    assert len(seen) == 10
    assert all(messages[0] == f"[user]: {TASK}" for messages in seen)
    assert seen[-1][1] == "Earlier in this channel: 12 messages."
    assert [text.split(" ")[-1] for text in seen[-1][2:]] == [
        "13",
        "14",
        "15",
        "16",
        "17",
        "18",
        "19",
    ]


async def test_a_view_may_let_go_of_the_task() -> None:
    """`pin=False` shows the newest messages alone."""
    async with scene() as at:
        seen = await _relay(at, 21, NamedWindowedSummary(4, pin=False))
    assert TASK not in "".join(seen[-1])
    assert seen[-1][0] == "Earlier in this channel: 15 messages."


async def test_an_opening_message_that_is_not_for_the_reader_is_not_pinned() -> None:
    """The first one that it may see is."""
    heard: list[list[str]] = []

    async def bob(turn: Any) -> str:
        heard.append([item.text for item in turn.messages])
        return "ok"

    async with scene() as at:
        at.hub.register_adapter(_Pairs())
        ana = await at.person("ana")
        await at.agent("bob", bob)
        channel = await ana.open(type="pairs", target=["bob"])
        await channel.send("to myself", audience=[ana.agent_id])
        for number in range(12):
            await channel.send(f"line {number}")
            await at.settle()
    assert heard[-1][0] == "line 0"


class _Pairs(ConversationAdapter):
    manifest = ChannelManifest("pairs")


@pytest.mark.parametrize(
    ("knob", "view"),
    [
        ("full_transcript", FullTranscript()),
        ({"name": "named_windowed_summary", "recent_n": 3}, NamedWindowedSummary(3)),
        ({"name": "windowed_summary", "recent_n": 3, "pin": False}, WindowedSummary(3, pin=False)),
    ],
)
def test_a_view_is_named_by_a_knob(knob: Any, view: Any) -> None:
    """Its name, or its name and its numbers."""
    assert view_of(knob) == view


async def test_a_knob_of_a_channel_chooses_the_view() -> None:
    """`knobs["view"]` decides what a participant without a view of its own sees."""
    async with scene() as at:
        knob = {"name": "windowed_summary", "recent_n": 1, "pin": False}
        seen = await _relay(at, 9, view=knob)
    assert seen[-1][0].startswith("Earlier in this channel: ")
    assert len(seen[-1]) == 3 and TASK not in seen[-1]


@pytest.mark.parametrize(
    ("type", "knobs", "problem"),
    [
        ("workflow", {"contextvars": {}}, "no knob 'contextvars'; did you mean 'context_vars'"),
        ("workflow", {"max_turns": 3}, "no knob 'max_turns'"),
        ("workflow", {"unbounded": "yes"}, r"knobs\['unbounded'\] .* is of type bool, not str"),
        ("workflow", {"view": "full"}, "the views are full_transcript"),
        ("workflow", {"view": "named_transcripts"}, "did you mean 'named_transcript'"),
        ("workflow", {"view": {"name": "windowed_summary"}}, "'recent_n': 20"),
        ("workflow", {"view": {"name": "windowed_summary", "recent_n": 0}}, "from 1"),
        ("workflow", {"view": {"name": "full_transcript", "recent_n": 3}}, "is written as"),
        ("workflow", {"view": 3}, "a view's name or an object"),
        ("discussion", {"orderng": "round_robin"}, "did you mean 'ordering'"),
        ("conversation", {"topic": "x"}, "a conversation channel has no knob 'topic'"),
        ("consulting", {"capability": 3}, r"knobs\['capability'\] .* of type str, not int"),
        ("limited", {"tpoic": "x"}, "did you mean 'topic'"),
    ],
)
async def test_an_unknown_or_wrong_knob_is_refused(
    type: str, knobs: dict[str, Any], problem: str
) -> None:
    """N10: with the nearest one there is, before anything is written."""

    class Limited(ConversationAdapter):
        manifest = ChannelManifest("limited", knobs_schema={"topic": "str"})

    async with scene() as at:
        at.hub.register_adapter(Limited())
        ana = await at.person("ana")
        await at.person("bob")
        if type == "workflow":
            graph = TransitionGraph.sequence(at.names("ana", "bob"))
            knobs = {"graph": graph.to_dict(), **knobs}
        with pytest.raises(ProtocolError, match=problem):
            await ana.open(type=type, target=["bob"], knobs=knobs)
        assert await at.hub.list_channels() == []


async def test_a_type_without_a_schema_takes_any_knob() -> None:
    """A channel type of the program's own that declares none is not limited."""
    async with scene() as at:
        at.hub.register_adapter(_Pairs())
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="pairs", target=["bob"], knobs={"topic": "tides"})
        assert (await channel.info()).knobs == {"topic": "tides"}


class LastTwo:
    """A view as one writes it for AG2: async, over the log, with the channel's metadata."""

    name = "last_two"

    def __init__(self, make: Any) -> None:
        self.make = make
        self.channels: set[str] = set()

    async def project(
        self,
        wal: list[Any],
        *,
        participant_id: str,
        channel: Any,
        render_envelope: Any,
        name_for: Any = str,
    ) -> list[Any]:
        """The last two messages."""
        self.channels.add(channel.channel_id)
        shown = [item for item in wal if render_envelope(item)]
        return [
            self.make(
                render_envelope(item), item.sender_id == participant_id, name_for(item.sender_id)
            )
            for item in shown[-2:]
        ]


def _as_ag2(parts: Any, own: bool, name: str) -> Any:
    events = pytest.importorskip("ag2.events")
    if own:
        return events.ModelMessage(parts[0].content)
    return events.ModelRequest([events.TextInput(f"{name} said"), *parts])


def _as_text(parts: Any, own: bool, name: str) -> str:
    return f"{name}: {parts}"


def _as_message(parts: Any, own: bool, name: str) -> ViewMessage:
    return ViewMessage(text=parts[0].content, own=own, sender_name=name)


@pytest.mark.parametrize(
    ("make", "last"),
    [
        (_as_ag2, ["review 6", "drafter said\ndraft 7"]),
        (_as_text, ["reviewer: review 6", "drafter: draft 7"]),
        (_as_message, ["review 6", "draft 7"]),
    ],
)
async def test_a_view_of_ag2_works_here(make: Any, last: list[str]) -> None:
    """N10: its events, texts and our own messages are what the participant sees."""
    view = LastTwo(make)
    async with scene() as at:
        seen = await _relay(at, 9, view)
        [channel] = await at.hub.list_channels()
    assert view.channels == {channel.channel_id}
    # The newest message is the input; before it come the last two that are older.
    assert seen[-1][1] == last[0]
    assert seen[-1][-1] == last[1]


async def test_a_view_may_subclass_a_built_in_one() -> None:
    """An async `project` that awaits the built-in one, and changes AG2's events that it gives."""
    events = pytest.importorskip("ag2.events")

    class Louder(NamedWindowedSummary):
        async def project(self, wal: Any, **about: Any) -> Any:  # type: ignore[override]
            return [self._louder(event) for event in await super().project(wal, **about)]

        def _louder(self, event: Any) -> Any:
            if not isinstance(event, events.ModelRequest):
                return event
            texts = [events.TextInput(part.content.upper()) for part in event.parts]
            return events.ModelRequest(texts)

    async with scene() as at:
        seen = await _relay(at, 9, Louder(2))
    assert seen[-1][-1] == "[DRAFTER]: DRAFT 7"


async def test_a_view_that_returns_nonsense_fails_the_round_with_its_name() -> None:
    """The error says what a view returns."""

    class Odd(LastTwo):
        async def project(self, wal: Any, **about: Any) -> list[Any]:
            return [3]

    async with scene() as at:
        client = await at.agent("bob", lambda text: "hi")
        client.view = Odd(None)
        ana = await at.person("ana")
        channel = await ana.open(type="conversation", target=["bob"])
        await channel.send("hello")
        await at.settle()
        [failed] = [r for r in await at.hub.audit_log.read_all() if r["kind"] == "turn_failed"]
        assert "the view Odd returned a int" in failed["exc_message"]


async def test_a_built_in_view_may_be_awaited() -> None:
    """`await view.project(wal, …, channel=…)` is AG2's way to call it."""
    view = NamedWindowedSummary(2)
    about: dict[str, Any] = {"participant_id": "a", "name_for": str.upper, "channel": None}
    wal = [said("b", "one"), said("a", "two")]
    seen = await view.project(wal, render_envelope=lambda item: item.event_data["text"], **about)
    assert [item.text for item in seen] == ["[B]: one", "two"]
