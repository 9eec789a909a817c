"""Own targets and conditions: classes that survive the wire form, registered by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    Always,
    Envelope,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
    TerminateTarget,
    Transition,
    TransitionCondition,
    TransitionDecision,
    TransitionGraph,
    TransitionTarget,
    WorkflowGraphError,
    register_condition,
    register_target,
)

from ._network import STORES, closed, run_on, told

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class HighestRankedReviewer(TransitionTarget):
    """The best reviewer that takes part."""

    name: ClassVar[str] = "highest_ranked_reviewer"
    role_priority: list[str] = field(default_factory=list)

    def resolve(self, state: Any, envelope: Envelope) -> TransitionDecision:
        """The first of the ranking that is a participant."""
        chosen_id = next(item for item in self.role_priority if item in state.participant_order)
        return TransitionDecision(next_speaker=chosen_id)


@dataclass(slots=True)
class SaysUrgent(TransitionCondition):
    """The message says that it is urgent."""

    name: ClassVar[str] = "says_urgent"
    word: str = "urgent"

    def evaluate(self, state: Any, envelope: Envelope) -> bool:
        """Whether the word is in the text."""
        return self.word in envelope.event_data.get("text", "")


@pytest.fixture(autouse=True)
def _registered() -> None:
    register_target(HighestRankedReviewer)
    register_condition(SaysUrgent)


async def program(store: Any) -> list[str]:
    """An urgent request goes to the best reviewer that is there."""
    async with await Hub.open(store) as hub:
        hc = HubClient(LocalLink(hub), hub=hub)
        user = await hc.register_human(Passport(name="user"))
        junior, senior = [
            await hc.register(
                Agent(name, config=TestConfig(f"{name} agrees")),
                Passport(name=name),
                Resume(),
                attach_plugin=False,
            )
            for name in ("junior", "senior")
        ]
        ranking = ["agt_nobody", senior.agent_id, junior.agent_id]
        graph = TransitionGraph(
            initial_speaker=user.agent_id,
            transitions=[Transition(when=SaysUrgent(), then=HighestRankedReviewer(ranking))],
            default_target=TerminateTarget("reviewed"),
        )
        channel = await user.open(
            type="workflow", target=["junior", "senior"], knobs={"graph": graph.to_dict()}
        )
        await channel.send("an urgent change")
        await user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=closed, timeout=60
        )
        return [name for name, _ in await told(hub, channel.channel_id)]


@pytest.mark.parametrize("kind", STORES)
async def test_own_classes_decide(kind: str, tmp_path: Path) -> None:
    """The hub loads both from the graph's wire form and asks them."""
    assert await run_on(kind, tmp_path, program) == [["user", "senior"]] * (
        1 if kind == "ag2-memory" else 2
    )


def test_the_wire_form_keeps_their_fields() -> None:
    """The name finds the class and the fields become its arguments."""
    graph = TransitionGraph(
        "a", [Transition(SaysUrgent("now"), HighestRankedReviewer(["b"]))], TerminateTarget()
    )
    assert TransitionGraph.loads(graph.dumps()) == graph


def test_an_unknown_name_is_an_error() -> None:
    """A target that nobody registered is refused, never guessed."""
    data = TransitionGraph(
        "a", [Transition(Always(), TerminateTarget())], TerminateTarget()
    ).to_dict()
    data["default_target"] = {"name": "somewhere", "args": {}}
    with pytest.raises(WorkflowGraphError, match="somewhere"):
        TransitionGraph.loads(data)
