"""The thirteen points of the workflow's semantics, with a hub and function participants."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CONTEXT_SET,
    EV_EXPECTATION_VIOLATED,
    EV_PACKET,
    EV_TEXT,
    Envelope,
)
from agent_adapter.flow.graph import (
    AgentTarget,
    Always,
    ContextEquals,
    FromSpeaker,
    RevertToInitiatorTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionDecision,
    TransitionGraph,
    register_target,
)
from agent_adapter.network.channels.views import NamedWindowedSummary
from agent_adapter.network.workflow_helpers import delete_context, set_context
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import Scene, scene

pytestmark = pytest.mark.anyio


async def _cast(at: Scene, **functions: Any) -> None:
    await at.person("user")
    for name, function in functions.items():
        await at.agent(name, function)


def _text(words: str) -> Any:
    async def participant(text: str) -> str:
        return words

    return participant


# --- 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({}, "knobs\\['graph'\\]"),
        ({"graph": "sequence"}, "as an object"),
        ({"graph": {"initial_speaker": "agt_nobody"}}, "agt_nobody"),
        ({"graph": None, "context_vars": []}, "context_vars|graph"),
    ],
)
async def test_point_01_a_channel_that_cannot_be_is_refused_and_nothing_is_made(
    knobs: dict[str, Any], said: str
) -> None:
    """No graph, a graph that is none, a stranger as first speaker, variables that are none."""
    async with scene() as at:
        await _cast(at, a=_text("a"))
        with pytest.raises(ProtocolError, match=said):
            await at.people["user"].open(type="workflow", target=["a"], knobs=knobs)
        assert await at.hub.list_channels() == []
        assert await at.hub.store.read(lambda tx: tx.count("envelopes")) == 0


async def test_point_01_one_participant_is_too_few() -> None:
    """Nobody talks to themselves here."""
    async with scene() as at:
        user = await at.person("user")
        graph = TransitionGraph(initial_speaker=user.agent_id)
        with pytest.raises(ProtocolError, match="at least 2 participants"):
            await user.open(type="workflow", target=[], knobs={"graph": graph.to_dict()})


# --- 2 -------------------------------------------------------------------------------------------


async def test_point_02_the_openers_first_send_is_the_first_speakers_turn() -> None:
    """Its own model is not called for it: the text is its contribution."""
    called: list[str] = []

    def counting(name: str) -> Any:
        async def participant(text: str) -> str:
            called.append(name)
            return name

        return participant

    async with scene() as at:
        await _cast(at, a=counting("a"), b=counting("b"))
        channel = await at.open("a", ["b"], TransitionGraph.sequence(at.names("a", "b")))
        await at.settle()
        assert called == []
        await channel.send("topic")
        await at.settle()
        assert called == ["b"]
        assert await at.said(channel) == [("a", "topic"), ("b", "b")]


async def test_point_02_a_person_as_seeder_lets_the_first_agent_think() -> None:
    """The brief goes to the drafter, who drafts."""
    async with scene() as at:
        await _cast(at, drafter=_text("a draft"))
        graph = TransitionGraph.sequence(at.names("user", "drafter"))
        channel = await at.open("user", ["drafter"], graph)
        await channel.send("Brief")
        await at.settle()
        assert (await at.said(channel))[-1] == ("drafter", "a draft")


# --- 3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [EV_TEXT, EV_PACKET])
async def test_point_03_only_the_expected_speaker_may_take_the_turn(event: str) -> None:
    """The refusal names both; nothing is written."""
    async with scene() as at:
        await at.person("ana")
        await at.person("bob")
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        before = len(await at.log(channel))
        data = {"text": "me"} if event == EV_TEXT else {"body": "me"}
        out_of_turn = Envelope(channel.channel_id, at.id("bob"), None, event, data)
        with pytest.raises(ProtocolError, match=r"expects ana .* to speak, not bob"):
            await at.hub.post_envelope(out_of_turn)
        assert len(await at.log(channel)) == before


async def test_point_03_any_participant_may_set_context_at_any_time() -> None:
    """It takes no turn."""
    async with scene() as at:
        await at.person("ana")
        await at.person("bob")
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        await set_context(await at.people["bob"].channel(channel.channel_id), "mood", "good")
        state = await at.hub.adapter_state(channel.channel_id)
        assert state.context_vars == {"mood": "good"}
        assert (state.turn_count, state.expected_next_speaker) == (0, at.id("ana"))


async def test_point_03_a_stranger_may_send_nothing() -> None:
    """Not even context."""
    async with scene() as at:
        for name in ("ana", "bob", "eve"):
            await at.person(name)
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        data: dict[str, Any] = {"set": {"mood": "bad"}}
        meddling = Envelope(channel.channel_id, at.id("eve"), None, EV_CONTEXT_SET, data)
        with pytest.raises(ProtocolError, match="does not take part"):
            await at.hub.post_envelope(meddling)


# --- 4 -------------------------------------------------------------------------------------------


async def test_point_04_updates_come_before_bookkeeping_and_that_before_routing() -> None:
    """A rule over context sees what this very turn has set."""

    async def router(turn: Any) -> str:
        await set_context(turn.channel, "route", "b")
        return "routed"

    async with scene() as at:
        await _cast(at, router=router, a=_text("a"), b=_text("b"))
        user, route, a, b = at.names("user", "router", "a", "b")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(FromSpeaker(user), AgentTarget(route)),
                Transition(FromSpeaker(b), TerminateTarget("by_b")),
                Transition(ContextEquals("route", "b"), AgentTarget(b)),
                Transition(FromSpeaker(route), AgentTarget(a)),
            ],
        )
        channel = await at.open("user", ["router", "a", "b"], graph)
        await channel.send("go")
        await at.settle()
        assert [name for name, _ in await at.said(channel)] == ["user", "router", "b"]
        assert await at.reason(channel) == "by_b"


async def test_point_04_a_packets_routing_comes_before_the_rules() -> None:
    """A `Handoff` beats a rule for the same speaker."""

    async def triage(turn: Any) -> Handoff:
        return Handoff("security", "smells")

    async with scene() as at:
        await _cast(at, triage=triage, general=_text("general"), security=_text("secured"))
        user, triage_id, general = at.names("user", "triage", "general")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(FromSpeaker(user), AgentTarget(triage_id)),
                Transition(FromSpeaker(triage_id), AgentTarget(general)),
            ],
        )
        channel = await at.open("user", ["triage", "general", "security"], graph)
        await channel.send("go")
        await at.settle()
        assert (await at.said(channel))[-1] == ("security", "secured")


async def test_point_04_the_first_routing_call_wins_and_within_it_finish_wins() -> None:
    """The model's order decides, then Finish before Handoff before the tool's name."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    def look() -> str:
        """Look."""
        return "seen"

    @registry.tool(effects="read")
    def hand_over() -> list[Any]:
        """Hand over and finish."""
        return [Handoff("b"), Finish("all done", "finished_by_tool")]

    async def a(turn: Any) -> str:
        for name in ("look", "hand_over"):
            await turn.call(registry.get(name))
        return "bye"

    async with scene() as at:
        await _cast(at, a=a, b=_text("b"))
        graph = TransitionGraph.sequence(at.names("user", "a", "b"))
        channel = await at.open("user", ["a", "b"], graph)
        await channel.send("go")
        await at.settle()
        assert await at.reason(channel) == "finished_by_tool"


async def test_point_04_a_lower_priority_number_is_looked_at_first() -> None:
    """Ties keep the order of the list."""
    async with scene() as at:
        await _cast(at, a=_text("a"), b=_text("b"))
        user, a, b = at.names("user", "a", "b")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(Always(), AgentTarget(a), priority=100),
                Transition(FromSpeaker(user), AgentTarget(b)),
                Transition(FromSpeaker(user), AgentTarget(a)),
            ],
            max_turns=2,
        )
        channel = await at.open("user", ["a", "b"], graph)
        await channel.send("go")
        await at.settle()
        assert (await at.said(channel))[-1] == ("b", "b")


# --- 5 -------------------------------------------------------------------------------------------


async def test_point_05_a_terminate_target_closes_with_its_reason() -> None:
    """The default of a sequence is reachable."""
    async with scene() as at:
        await _cast(at, a=_text("a"))
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.settle()
        assert await at.reason(channel) == "sequence_complete"


async def test_point_05_max_turns_closes_and_never_falls_through_to_the_default() -> None:
    """`default_target` names another reason, which is not used."""
    async with scene() as at:
        await _cast(at, a=_text("a"), b=_text("b"))
        user, a, b = at.names("user", "a", "b")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(FromSpeaker(user), AgentTarget(a)),
                Transition(FromSpeaker(a), AgentTarget(b)),
                Transition(FromSpeaker(b), AgentTarget(a)),
            ],
            default_target=TerminateTarget("max_iterations"),
            max_turns=5,
        )
        channel = await at.open("user", ["a", "b"], graph)
        await channel.send("go")
        await at.settle()
        assert len(await at.said(channel)) == 5
        assert await at.reason(channel) == "max_turns"


async def test_point_05_the_graphs_own_reason_wins_over_max_turns() -> None:
    """When both fall on the same turn."""
    async with scene() as at:
        await _cast(at, a=_text("a"))
        graph = TransitionGraph.sequence(at.names("user", "a"))
        assert graph.max_turns == 2
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.settle()
        assert await at.reason(channel) == "sequence_complete"


# --- 6 -------------------------------------------------------------------------------------------


async def test_point_06_a_round_is_one_packet_with_its_context_before_it() -> None:
    """What its tools set is seen by the round at once, and written with the packet."""
    seen: list[Any] = []

    async def a(turn: Any) -> str:
        await set_context(turn.channel, "counter", 1)
        seen.append(turn.state().context_vars["counter"])
        await delete_context(turn.channel, "old")
        return "done"

    async with scene() as at:
        await _cast(at, a=a)
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph, context_vars={"old": 1})
        await channel.send("go")
        await at.settle()
        assert seen == [1]
        assert (await at.events(channel))[1:4] == ["context.set", "context.set", "packet"]
        assert (await at.hub.adapter_state(channel.channel_id)).context_vars == {"counter": 1}


async def test_point_06_a_round_without_words_or_routing_writes_no_packet() -> None:
    """The turn is over all the same."""
    async with scene() as at:
        await _cast(at, a=_text(""))
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.settle()
        assert await at.events(channel) == ["msg.text"]
        assert await at.hub.pending_turns_for(at.id("a")) == []


# --- 7 -------------------------------------------------------------------------------------------


async def test_point_07_a_failed_round_leaves_the_channel_as_before_it() -> None:
    """What it had staged without a recorded call is gone; the turn is run again."""

    async def a(turn: Any) -> str:
        if turn.attempt == 1:
            await set_context(turn.channel, "half", True)
            raise OSError("crash")
        return "whole"

    async with scene() as at:
        await _cast(at, a=a)
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.settle()
        assert (await at.hub.adapter_state(channel.channel_id)).context_vars == {}
        await at.pass_by(1.1)
        assert await at.events(channel) == ["msg.text", "packet", "channel.closed"]


async def test_point_07_a_recorded_call_counts_once_though_the_round_is_run_again() -> None:
    """`counter + 1` is 1 after two attempts, and the tool has run once."""
    ran: list[int] = []
    registry = aa.ToolRegistry()

    @registry.tool(effects="write")
    async def increment(channel: aa.ChannelInject, state: aa.ChannelStateInject) -> int:
        """Count."""
        ran.append(1)
        value = int(state.context_vars.get("counter", 0)) + 1
        await set_context(channel, "counter", value)
        return value

    async def a(turn: Any) -> str:
        value = await turn.call(registry.get("increment"))
        if turn.attempt == 1:
            raise OSError("after the tool, before the packet")
        return f"counter is {value}, seen as {turn.state().context_vars['counter']}"

    async with scene() as at:
        await _cast(at, a=a)
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.settle()
        await at.pass_by(1.1)
        assert ran == [1]
        assert (await at.said(channel))[-1] == ("a", "counter is 1, seen as 1")
        assert (await at.hub.adapter_state(channel.channel_id)).context_vars == {"counter": 1}
        assert (await at.events(channel)).count("context.set") == 1


# --- 8 -------------------------------------------------------------------------------------------


async def test_point_08_waiting_looks_at_the_log_and_then_waits() -> None:
    """The same event can be waited for before and after it has come."""
    async with scene() as at:
        await _cast(at, a=_text("a"))
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        user = at.people["user"]

        def closed(envelope: Envelope) -> bool:
            return envelope.event_type == EV_CHANNEL_CLOSED

        where = {"channel_id": channel.channel_id, "predicate": closed, "timeout": 5}
        early = asyncio.create_task(user.wait_for_channel_event(**where))
        await asyncio.sleep(0)
        await channel.send("go")
        await at.settle()
        assert await early == await user.wait_for_channel_event(**where)
        pulled = await user.next_envelope(predicate=closed, timeout=60)
        assert pulled.event_data["reason"] == "sequence_complete"


async def test_point_08_the_log_and_the_audit_log_can_be_read() -> None:
    """`read_wal` from and to an entry; `_audit_log` under its old name too."""
    async with scene() as at:
        await _cast(at, a=_text("a"))
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.settle()
        whole = await at.hub.read_wal(channel.channel_id)
        assert await at.hub.read_wal(channel.channel_id, since=2, until=4) == whole[2:4]
        kinds = [record["kind"] for record in await at.hub._audit_log.read_all()]
        assert kinds == ["agent_registered"] * 2 + ["channel_created", "channel_closed"]


# --- 9 -------------------------------------------------------------------------------------------


async def test_point_09_each_speaker_sees_a_named_windowed_transcript() -> None:
    """Twice as many messages as participants, and a line about the others."""
    seen: list[list[str]] = []

    async def a(turn: Any) -> str:
        seen.append([message.text for message in turn.messages])
        return f"a{len(seen)}"

    async with scene() as at:
        await _cast(at, a=a)
        graph = TransitionGraph.round_robin(at.names("user", "a"), max_turns=20)
        channel = await at.open("user", ["a"], graph)
        policy = at.hub.adapter_for(channel.channel_id).default_view_policy(
            channel.metadata, at.id("a")
        )
        assert policy == NamedWindowedSummary(4)
        for number in range(5):
            await at.people["user"].send(channel.channel_id, f"u{number}")
            await at.settle()
        assert seen[0] == []
        assert seen[1] == ["[user]: u0", "a1"]
        assert seen[4][0] == "[user]: u0"  # the opening message, which says what it is about
        assert "Earlier in this channel" in seen[4][1]
        assert seen[4][2:] == ["[user]: u2", "a3", "[user]: u3", "a4"]


# --- 10 ------------------------------------------------------------------------------------------


async def test_point_10_a_silent_agent_is_warned_about_at_120_s_and_closed_at_600_s() -> None:
    """An agent that hangs is no different from a person who is away."""
    forever = asyncio.Event()

    async def a(turn: Any) -> str:
        await forever.wait()
        return "too late"

    async with scene() as at:
        await _cast(at, a=a)
        graph = TransitionGraph.sequence(at.names("user", "a"))
        channel = await at.open("user", ["a"], graph)
        await channel.send("go")
        await at.hub.poll()
        at.clock.pass_by(121)
        await at.hub.run_expectations()
        assert (await at.log(channel))[-1].event_type == EV_EXPECTATION_VIOLATED
        at.clock.pass_by(480)
        await at.hub.run_expectations()
        assert await at.reason(channel) == "expectation_violated:turn_within"
        forever.set()
        await at.settle()
        assert (await at.events(channel))[-1] == "channel.closed"


# --- 11 ------------------------------------------------------------------------------------------


@register_target
@dataclass(slots=True)
class _Alphabetical:
    """The participant after the last speaker by id."""

    backwards: bool = False
    name: ClassVar[str] = "test_hub_alphabetical"

    def resolve(self, state: Any, envelope: Envelope) -> TransitionDecision:
        """The first other one."""
        others = sorted(p for p in state.participant_order if p != envelope.sender_id)
        return TransitionDecision(others[-1 if self.backwards else 0])


async def test_point_11_an_own_target_survives_to_dict_and_a_restart() -> None:
    """The second hub reads the graph from the store, and routes by it."""
    store = MemoryStore()
    async with scene(store) as at:
        await at.person("ana")
        await at.person("bob")
        graph = TransitionGraph(
            initial_speaker=at.id("ana"),
            transitions=[Transition(Always(), _Alphabetical(backwards=True))],  # type: ignore[arg-type]  # structurally a target
            max_turns=4,
        )
        channel = await at.open("ana", ["bob"], graph)
        await channel.send("1")
    async with scene(store) as at:
        for name in ("ana", "bob"):
            await at.person(name)
        for name, text in (("bob", "2"), ("ana", "3"), ("bob", "4")):
            await at.people[name].send(channel.channel_id, text)
        assert await at.reason(channel.channel_id) == "max_turns"


async def test_point_11_an_unknown_name_is_refused_at_open() -> None:
    """Never a guess."""
    async with scene() as at:
        await _cast(at, a=_text("a"))
        data = TransitionGraph.sequence(at.names("user", "a")).to_dict()
        data["transitions"][0]["then"]["name"] = "unheard_of"
        with pytest.raises(ProtocolError, match="unheard_of"):
            await at.open("user", ["a"], data)


# --- 12 ------------------------------------------------------------------------------------------


async def test_point_12_a_workflow_gives_its_speakers_no_tools() -> None:
    """Routing is the business of their own tools."""
    given: list[Any] = []

    async def a(turn: Any) -> str:
        given.extend(turn.tools)
        return "done"

    async with scene() as at:
        await _cast(at, a=a)
        channel = await at.open("user", ["a"], TransitionGraph.sequence(at.names("user", "a")))
        await channel.send("go")
        await at.settle()
        assert given == []


async def test_point_12_sequence_also_sets_max_turns() -> None:
    """As many turns as steps."""
    assert TransitionGraph.sequence(["a", "b", "c"]).max_turns == 3


# --- 13: the eight patterns -----------------------------------------------------------------------


async def test_point_13_hierarchy() -> None:
    """A coordinator assigns, the specialist goes back to whoever opened the channel."""
    orders = iter([Handoff("writer", "please"), Finish("done", "assembled")])

    async def coordinator(turn: Any) -> Any:
        return next(orders)

    async with scene() as at:
        await _cast(at, coordinator=coordinator, writer=_text("written"))
        user, lead, writer = at.names("user", "coordinator", "writer")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(FromSpeaker(user), AgentTarget(lead)),
                Transition(FromSpeaker(writer), RevertToInitiatorTarget()),
            ],
        )
        channel = await at.open("user", ["coordinator", "writer"], graph)
        await channel.send("go")
        await at.settle()
        await channel.send("and now?")
        await at.settle()
        assert await at.reason(channel) == "assembled"


async def test_point_13_star_ends_by_the_tool_that_synthesises() -> None:
    """`ToolCalled` closes; the spokes answer back to the middle."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    def synthesise() -> str:
        """Put together."""
        return "put together"

    asked = iter(["left", "right"])

    async def middle(turn: Any) -> Any:
        spoke = next(asked, None)
        if spoke is not None:
            return Handoff(spoke)
        return str(await turn.call(registry.get("synthesise")))

    async with scene() as at:
        await _cast(at, middle=middle, left=_text("l"), right=_text("r"))
        user, hub, left, right = at.names("user", "middle", "left", "right")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(ToolCalled("synthesise"), TerminateTarget("synthesised")),
                Transition(FromSpeaker(user), AgentTarget(hub)),
                Transition(FromSpeaker(left), AgentTarget(hub)),
                Transition(FromSpeaker(right), AgentTarget(hub)),
            ],
        )
        channel = await at.open("user", ["middle", "left", "right"], graph)
        await channel.send("go")
        await at.settle()
        assert [name for name, _ in await at.said(channel)][1:] == [
            "middle",
            "left",
            "middle",
            "right",
            "middle",
        ]
        assert await at.reason(channel) == "synthesised"


async def test_point_13_a_sticky_context_is_cleared_by_whoever_it_routes_to() -> None:
    """Context-aware routing that goes on afterwards."""
    categories = iter(["billing", "end"])

    async def triage(turn: Any) -> str:
        await set_context(turn.channel, "category", next(categories))
        return "sorted"

    async def billing(turn: Any) -> str:
        await delete_context(turn.channel, "category")
        return "billed"

    async with scene() as at:
        await _cast(at, triage=triage, billing=billing)
        user, triage_id, billing_id = at.names("user", "triage", "billing")
        graph = TransitionGraph(
            initial_speaker=user,
            transitions=[
                Transition(ContextEquals("category", "end"), TerminateTarget("handled")),
                Transition(ContextEquals("category", "billing"), AgentTarget(billing_id)),
                Transition(Always(), AgentTarget(triage_id)),
            ],
            max_turns=12,
        )
        channel = await at.open("user", ["triage", "billing"], graph)
        await channel.send("my bill is wrong")
        await at.settle()
        assert [name for name, _ in await at.said(channel)] == [
            "user",
            "triage",
            "billing",
            "triage",
        ]
        assert await at.reason(channel) == "handled"
