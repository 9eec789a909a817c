"""Eight ways to let participants work together, each a graph over plain functions.

python examples/network_patterns.py            all of them
python examples/network_patterns.py pipeline   one of them
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import agent_adapter as aa
from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    AgentTarget,
    ContextEquals,
    FromSpeaker,
    Handoff,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    RevertToInitiatorTarget,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
    Turn,
)
from agent_adapter.network.workflow_helpers import set_context

Ids = Mapping[str, str]
Draw = Callable[[Ids], TransitionGraph]
People = Mapping[str, Callable[..., Any]]
tools = aa.ToolRegistry()


@tools.tool
async def note(key: str, value: Any, channel: aa.ChannelInject) -> str:
    """Set a variable of the channel."""
    await set_context(channel, key, value)
    return f"{key} is {value}"


@tools.tool
def synthesise(reason: str) -> str:
    """Say that all sources are in."""
    return reason


@tools.tool
def resolve(reason: str) -> str:
    """Say that the case is solved."""
    return reason


@tools.tool
def pass_to(name: str, reason: str) -> Handoff:
    """Hand the case to somebody."""
    return Handoff(name, reason)


async def run(participants: People, draw: Draw, task: str, **knobs: Any) -> str:
    """One channel of these participants, opened by a user; who spoke, and why it ended."""
    async with await Hub.open("memory://") as hub:
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        ids = {"user": user.agent_id}
        for name, function in participants.items():
            client = await hc.register(function, Passport(name=name), attach_plugin=False)
            ids[name] = client.agent_id
        channel = await user.open(
            type="workflow",
            target=list(participants),
            knobs={"graph": draw(ids).to_dict(), **knobs},
        )
        await channel.send(task)
        end = await user.wait_for_channel_event(
            channel_id=channel.channel_id,
            predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED,
            timeout=60,
        )
        packets = [e for e in await hub.read_wal(channel.channel_id) if "body" in e.event_data]
        order = " > ".join(hub.name_for(e.sender_id) for e in packets)
        return f"{order} ({end.event_data['reason']})"


def after(ids: Ids, speaker: str, then: str) -> Transition:
    """`then` speaks after `speaker`."""
    return Transition(when=FromSpeaker(ids[speaker]), then=AgentTarget(ids[then]))


def says(text: str) -> Callable[[], str]:
    """A participant that always says the same."""
    return lambda: text


async def pipeline() -> str:
    """A then B then C: research, write, edit."""

    def draw(ids: Ids) -> TransitionGraph:
        return TransitionGraph.sequence([ids[name] for name in ("user", "research", "write")])

    return await run({"research": says("facts"), "write": says("text")}, draw, "tides")


async def hierarchy() -> str:
    """A coordinator assigns work, and each specialist reports back to it."""
    plan = ["optics", "thermics"]

    async def coordinator(turn: Turn) -> str | Handoff:
        return Handoff(plan.pop(0), "your part") if plan else "report"

    def draw(ids: Ids) -> TransitionGraph:
        back = [
            Transition(when=FromSpeaker(ids[name]), then=AgentTarget(ids["coordinator"]))
            for name in ("optics", "thermics", "user")
        ]
        return TransitionGraph(ids["user"], back, TerminateTarget("reported"), max_turns=9)

    people: People = {"coordinator": coordinator, "optics": says("light"), "thermics": says("heat")}
    return await run(people, draw, "Study the lamp.")


async def star() -> str:
    """A hub asks each of its spokes, then puts the answers together."""
    spokes = ["north", "south"]

    async def centre(turn: Turn) -> str | Handoff:
        if spokes:
            return Handoff(spokes.pop(0), "your reading?")
        await turn.call(synthesise, reason="all in")
        return "mean is 7"

    def draw(ids: Ids) -> TransitionGraph:
        rules = [
            Transition(when=ToolCalled("synthesise"), then=TerminateTarget("synthesised")),
            *(after(ids, name, "centre") for name in ("user", "north", "south")),
        ]
        return TransitionGraph(ids["user"], rules, TerminateTarget("?"), max_turns=9)

    people: People = {"centre": centre, "north": says("5"), "south": says("9")}
    return await run(people, draw, "Measure.")


async def escalation() -> str:
    """Each tier solves the case or hands it up; `RevertToInitiatorTarget` would ask the user."""

    async def first(turn: Turn) -> str:
        await turn.call(pass_to, name="second", reason="beyond me")
        return "handing up"

    async def second(turn: Turn) -> str:
        await turn.call(resolve, reason="reset the router")
        return "solved"

    def draw(ids: Ids) -> TransitionGraph:
        rules = [
            Transition(when=ToolCalled("resolve"), then=TerminateTarget("resolved")),
            after(ids, "user", "first"),
        ]
        return TransitionGraph(ids["user"], rules, RevertToInitiatorTarget(), max_turns=6)

    return await run({"first": first, "second": second}, draw, "No network.")


async def redundancy() -> str:
    """Several propose, one evaluates."""

    def evaluator(turn: Turn) -> str:
        proposals: list[str] = [message.text for message in turn.messages]
        return f"best: {max(proposals, key=len)}"

    def draw(ids: Ids) -> TransitionGraph:
        names = ("user", "bold", "careful", "evaluator")
        return TransitionGraph.sequence([ids[name] for name in names])

    people: People = {"bold": says("fly"), "careful": says("walk"), "evaluator": evaluator}
    return await run(people, draw, "How do we get there?")


async def feedback_loop() -> str:
    """Draft and review until `done` is set."""

    async def reviewer(turn: Turn) -> str:
        turns: int = turn.state().turn_count
        if turns < 4:
            return "again"
        return str(await turn.call(note, key="done", value=True))

    def draw(ids: Ids) -> TransitionGraph:
        rules = [
            Transition(when=ContextEquals("done", True), then=TerminateTarget("approved")),
            after(ids, "user", "drafter"),
            after(ids, "drafter", "reviewer"),
            after(ids, "reviewer", "drafter"),
        ]
        return TransitionGraph(ids["user"], rules, TerminateTarget("?"), max_turns=10)

    people: People = {"drafter": says("draft"), "reviewer": reviewer}
    return await run(people, draw, "Write.")


async def context_routing() -> str:
    """Triage sets a category, and rules on it choose the specialist."""

    async def triage(turn: Turn) -> str:
        return str(await turn.call(note, key="category", value="billing"))

    def draw(ids: Ids) -> TransitionGraph:
        specialists = ("billing", "shipping")
        rules = [
            *(
                Transition(when=FromSpeaker(ids[name]), then=TerminateTarget("answered"))
                for name in specialists
            ),
            after(ids, "user", "triage"),
            *(
                Transition(when=ContextEquals("category", name), then=AgentTarget(ids[name]))
                for name in specialists
            ),
        ]
        return TransitionGraph(ids["user"], rules, TerminateTarget("unroutable"))

    people: People = {"triage": triage, "billing": says("paid"), "shipping": says("sent")}
    return await run(people, draw, "My bill?")


async def triage_with_tasks() -> str:
    """Triage makes the plan, kept as a variable, and a sequence carries it out."""

    async def triage(turn: Turn) -> str:
        await turn.call(note, key="tasks", value=["measure", "report"])
        return "two tasks"

    async def worker(turn: Turn) -> str:
        first, *rest = turn.state().context_vars["tasks"]
        await turn.call(note, key="tasks", value=rest)
        return f"did {first}"

    def draw(ids: Ids) -> TransitionGraph:
        return TransitionGraph.sequence([ids[n] for n in ("user", "triage", "lab", "office")])

    people: People = {"triage": triage, "lab": worker, "office": worker}
    return await run(people, draw, "Study tides.", context_vars={"tasks": []})


PATTERNS: dict[str, Callable[[], Awaitable[str]]] = {
    "pipeline": pipeline,
    "hierarchy": hierarchy,
    "star": star,
    "escalation": escalation,
    "redundancy": redundancy,
    "feedback_loop": feedback_loop,
    "context_routing": context_routing,
    "triage_with_tasks": triage_with_tasks,
}


async def main() -> None:
    """Run the patterns named on the command line, or all."""
    for name in sys.argv[1:] or PATTERNS:
        print(f"{name}: {await PATTERNS[name]()}")


if __name__ == "__main__":
    asyncio.run(main())
