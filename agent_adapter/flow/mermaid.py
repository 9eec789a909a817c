"""A graph drawn as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_adapter.flow.conditions import FromSpeaker, TransitionCondition
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.flow.targets import TransitionTarget

__all__ = ["drawn"]

_LONGEST = 60


def drawn(graph: TransitionGraph, names: Mapping[str, str]) -> str:
    """The flowchart of `graph`: rules numbered as they are looked at, the default dashed."""
    picture = _Picture(names)
    start = picture.speaker(graph.initial_speaker)
    picture.edge("start(( ))", start, "", dashed=False)
    for number, rule in enumerate(graph.ordered(), 1):
        source, label = picture.source(rule.when)
        text = f"{number}. {label}" if label else f"{number}."
        picture.edge(source, picture.target(rule.then), text, dashed=False)
    anyone = picture.anyone()
    picture.edge(anyone, picture.target(graph.default_target), "otherwise", dashed=True)
    if graph.max_turns is not None:
        end = picture.end("max_turns")
        picture.edge(anyone, end, f"after {graph.max_turns} turns", dashed=True)
    return picture.text()


class _Picture:
    """Collects nodes, each once, and edges, in order."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._nodes: dict[tuple[str, str], str] = {}
        self._shapes: list[str] = []
        self._edges: list[str] = []

    def speaker(self, agent_id: str) -> str:
        return self._node("speaker", agent_id, '["', '"]', self._names.get(agent_id, agent_id))

    def anyone(self) -> str:
        return self._node("any", "", '{{"', '"}}', "any speaker")

    def end(self, reason: str) -> str:
        return self._node("end", reason, '(["', '"])', f"end: {reason}" if reason else "end")

    def other(self, label: str) -> str:
        return self._node("other", label, '[/"', '"/]', label)

    def source(self, when: TransitionCondition) -> tuple[str, str]:
        """The node that a rule starts from, and the label of its edge."""
        if isinstance(when, FromSpeaker):
            return self.speaker(when.agent_id), ""
        parts = getattr(when, "conditions", None)
        if when.name == "all_of" and parts:
            speakers = [part for part in parts if isinstance(part, FromSpeaker)]
            if len(speakers) == 1:
                rest = [part for part in parts if part is not speakers[0]]
                label = " and ".join(self._said(part) for part in rest)
                return self.speaker(speakers[0].agent_id), label
        return self.anyone(), "" if when.name == "always" else self._said(when)

    def target(self, then: TransitionTarget) -> str:
        """The node that a rule leads to."""
        if then.name == "agent":
            return self.speaker(getattr(then, "agent_id", ""))
        if then.name == "terminate":
            return self.end(getattr(then, "reason", ""))
        return self.other(_TARGETS.get(then.name, then.name))

    def edge(self, source: str, target: str, label: str, *, dashed: bool) -> None:
        arrow = "-.->" if dashed else "-->"
        said = f'|"{_escaped(label)}"|' if label else ""
        self._edges.append(f"    {source} {arrow}{said} {target}")

    def text(self) -> str:
        return "\n".join(["flowchart TD", *self._shapes, *self._edges]) + "\n"

    def _said(self, when: TransitionCondition) -> str:
        say = _CONDITIONS.get(when.name)
        if say is not None:
            return say(when, self)
        return when.name

    def _node(self, kind: str, key: str, opening: str, closing: str, label: str) -> str:
        if (kind, key) not in self._nodes:
            node = f"n{len(self._nodes)}"
            self._nodes[kind, key] = node
            self._shapes.append(f"    {node}{opening}{_escaped(label)}{closing}")
        return self._nodes[kind, key]

    def named(self, agent_id: str) -> str:
        return self._names.get(agent_id, agent_id)

    def joined(self, parts: list[TransitionCondition], word: str) -> str:
        return "(" + f" {word} ".join(self._said(part) for part in parts) + ")"

    def said(self, when: TransitionCondition) -> str:
        return self._said(when)


_CONDITIONS: dict[str, Callable[[Any, _Picture], str]] = {
    "always": lambda when, picture: "always",
    "from_speaker": lambda when, picture: f"from {picture.named(when.agent_id)}",
    "tool_called": lambda when, picture: f"{when.tool_name}()",
    "context_equals": lambda when, picture: f"{when.key} = {when.value!r}",
    "context_matches": lambda when, picture: when.expression,
    "turn_count_at_least": lambda when, picture: f"turn {when.turns} or later",
    "all_of": lambda when, picture: picture.joined(when.conditions, "and"),
    "any_of": lambda when, picture: picture.joined(when.conditions, "or"),
    "not": lambda when, picture: f"not {picture.said(when.condition)}",
}

_TARGETS = {
    "round_robin": "next in order",
    "stay": "same speaker",
    "revert_to_initiator": "whoever opened the channel",
}


def _escaped(text: str) -> str:
    """`text` as one line of a quoted Mermaid label, in which nothing is markup."""
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1] + "…"
    # A "#" begins an entity, so it is written as one before the others are.
    line = line.replace("#", "#35;")
    for char, entity in (('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        line = line.replace(char, entity)
    return line
