"""A graph drawn as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Mapping

from agent_adapter.flow.picture import Arrow, Node, NodeKind, picture_of
from agent_adapter.flow.transitions import GraphRules

_LONGEST = 60

_SHAPES: dict[NodeKind, tuple[str, str]] = {
    "speaker": ('["', '"]'),
    "any": ('{{"', '"}}'),
    "end": ('(["', '"])'),
    "other": ('[/"', '"/]'),
}


def drawn(graph: GraphRules, names: Mapping[str, str]) -> str:
    """The flowchart of `graph`: rules numbered in order of evaluation, the default dashed."""
    picture = picture_of(graph, names)
    nodes = [_node(node) for node in picture.nodes]
    arrows = [_arrow(arrow) for arrow in picture.arrows]
    return "\n".join(["flowchart TD", *nodes, *arrows]) + "\n"


def _node(node: Node) -> str:
    opening, closing = _SHAPES[node.kind]
    return f"    {node.id}{opening}{_escaped(node.label)}{closing}"


def _arrow(arrow: Arrow) -> str:
    line = "-.->" if arrow.dashed else "-->"
    said = f'|"{_escaped(arrow.label)}"|' if arrow.label else ""
    source = "start(( ))" if arrow.source == "start" else arrow.source
    return f"    {source} {line}{said} {arrow.target}"


def _escaped(text: str) -> str:
    """`text` as one line of a quoted Mermaid label, in which nothing is markup."""
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1] + "…"
    # First: "#" begins the entities that the other replacements insert.
    line = line.replace("#", "#35;")
    for char, entity in (('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        line = line.replace(char, entity)
    return line
