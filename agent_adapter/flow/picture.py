"""The nodes and arrows of a graph's diagram, in the order of its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_adapter.flow.conditions import FromSpeaker, TransitionCondition
from agent_adapter.flow.targets import TransitionTarget
from agent_adapter.flow.transitions import GraphRules, in_order

NodeKind = Literal["start", "speaker", "any", "end", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One box of the diagram; `key` is a participant's id or the name of another target."""

    id: str
    kind: NodeKind
    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """An arrow between two nodes; `dashed` for the default target and `max_turns`."""

    source: str
    target: str
    label: str
    dashed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The parts of a diagram."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


def picture_of(graph: GraphRules, names: Mapping[str, str]) -> Picture:
    """The diagram of `graph`: rules numbered in order of evaluation, the default dashed."""
    made = _Parts(names)
    made.arrow("start", made.speaker(graph.initial_speaker), "", dashed=False)
    for number, rule in enumerate(in_order(graph.transitions), 1):
        source, label = made.source(rule.when)
        text = f"{number}. {label}" if label else f"{number}."
        made.arrow(source, made.target(rule.then), text, dashed=False)
    anyone = made.node("any", "", "any speaker")
    made.arrow(anyone, made.target(graph.default_target), "otherwise", dashed=True)
    if graph.max_turns is not None:
        end = made.end("max_turns")
        made.arrow(anyone, end, f"after {graph.max_turns} turns", dashed=True)
    return Picture(nodes=tuple(made.nodes.values()), arrows=tuple(made.arrows))


class _Parts:
    """Collects nodes, without duplicates, and arrows, in order."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.nodes: dict[tuple[str, str], Node] = {}
        self.arrows: list[Arrow] = []

    def speaker(self, agent_id: str) -> str:
        return self.node("speaker", agent_id, self.named(agent_id))

    def end(self, reason: str) -> str:
        return self.node("end", reason, f"end: {reason}" if reason else "end")

    def node(self, kind: NodeKind, key: str, label: str) -> str:
        if (kind, key) not in self.nodes:
            made = Node(id=f"n{len(self.nodes)}", kind=kind, key=key, label=label)
            self.nodes[kind, key] = made
        return self.nodes[kind, key].id

    def source(self, when: TransitionCondition) -> tuple[str, str]:
        """The node that a rule starts from, and the label of its arrow."""
        if isinstance(when, FromSpeaker):
            return self.speaker(when.agent_id), ""
        parts = getattr(when, "conditions", None)
        if when.name == "all_of" and parts:
            speakers = [part for part in parts if isinstance(part, FromSpeaker)]
            if len(speakers) == 1:
                rest = [part for part in parts if part is not speakers[0]]
                label = " and ".join(self.said(part) for part in rest)
                return self.speaker(speakers[0].agent_id), label
        anyone = self.node("any", "", "any speaker")
        return anyone, "" if when.name == "always" else self.said(when)

    def target(self, then: TransitionTarget) -> str:
        """The node that a rule leads to."""
        if then.name == "agent":
            return self.speaker(getattr(then, "agent_id", ""))
        if then.name == "terminate":
            return self.end(getattr(then, "reason", ""))
        label = _TARGETS.get(then.name, then.name)
        return self.node("other", label, label)

    def arrow(self, source: str, target: str, label: str, *, dashed: bool) -> None:
        self.arrows.append(Arrow(source=source, target=target, label=label, dashed=dashed))

    def named(self, agent_id: str) -> str:
        return self._names.get(agent_id, agent_id)

    def joined(self, parts: list[TransitionCondition], word: str) -> str:
        return "(" + f" {word} ".join(self.said(part) for part in parts) + ")"

    def said(self, when: TransitionCondition) -> str:
        say = _CONDITIONS.get(when.name)
        return when.name if say is None else say(when, self)


_CONDITIONS: dict[str, Callable[[Any, _Parts], str]] = {
    "always": lambda when, parts: "always",
    "from_speaker": lambda when, parts: f"from {parts.named(when.agent_id)}",
    "tool_called": lambda when, parts: f"{when.tool_name}()",
    "context_equals": lambda when, parts: f"{when.key} = {when.value!r}",
    "context_matches": lambda when, parts: when.expression,
    "turn_count_at_least": lambda when, parts: f"turn {when.turns} or later",
    "all_of": lambda when, parts: parts.joined(when.conditions, "and"),
    "any_of": lambda when, parts: parts.joined(when.conditions, "or"),
    "not": lambda when, parts: f"not {parts.said(when.condition)}",
}

_TARGETS = {
    "round_robin": "next in order",
    "stay": "same speaker",
    "revert_to_initiator": "the channel's opener",
}
