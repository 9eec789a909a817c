"""A channel's graph as SVG: layers from the first speaker down, the current speaker highlighted.

Made here, without a library or a script, so that the content security policy stays strict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from html import escape

from agent_adapter.core.inert import visible
from agent_adapter.flow.picture import Arrow, Node, Picture

_WIDTH, _HEIGHT = 150, 40
_ACROSS, _DOWN = 60, 72
_MARGIN = 30
_LONGEST = 18
_WORDS = 28


@dataclass(frozen=True, slots=True)
class _Box:
    node: Node
    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.x + _WIDTH / 2


def graph_svg(
    picture: Picture,
    current: str | None = None,
    *,
    spoke: Collection[str] = (),
    steps: Collection[tuple[str, str]] = (),
    title: str = "Speakers",
) -> str:
    """The picture as one `<svg>` element without scripts and styles; its texts are escaped.

    `current` is the id of the current speaker; `spoke` are those who have spoken, `steps` who spoke
    after whom: the path that was taken.
    """
    boxes, width, height = _placed(picture)
    lit = "" if current is None else _name_of(picture, current)
    described = f"{len(picture.nodes)} nodes, {len(picture.arrows)} rules"
    described += f"; current speaker: {lit}" if lit else ""
    parts = [
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" role="img" aria-labelledby="graph-title graph-about">',
        f'<title id="graph-title">{_text(title)}</title>',
        f'<desc id="graph-about">{_text(described)}</desc>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    parts += [
        _arrow(arrow, boxes, number, taken=_is_taken(arrow, boxes, steps))
        for number, arrow in enumerate(picture.arrows)
    ]
    for box in boxes.values():
        is_speaker, key = box.node.kind == "speaker", box.node.key
        parts.append(
            _box(box, lit=is_speaker and key == current, spoke=is_speaker and key in spoke)
        )
    return "".join([*parts, "</svg>"])


def _placed(picture: Picture) -> tuple[dict[str, _Box], float, float]:
    layers = _layers(picture)
    widest = max((len(layer) for layer in layers), default=1)
    width = 2 * _MARGIN + widest * _WIDTH + (widest - 1) * _ACROSS + 200
    boxes: dict[str, _Box] = {}
    for depth, layer in enumerate(layers):
        used = len(layer) * _WIDTH + (len(layer) - 1) * _ACROSS
        left = (width - used) / 2
        for place, node in enumerate(layer):
            x = left + place * (_WIDTH + _ACROSS)
            boxes[node.id] = _Box(node, x, _MARGIN + depth * (_HEIGHT + _DOWN))
    height = 2 * _MARGIN + len(layers) * _HEIGHT + max(0, len(layers) - 1) * _DOWN
    return boxes, width, height


def _layers(picture: Picture) -> list[list[Node]]:
    """The nodes by distance from the start; ends are last, unreachable nodes in the last layer."""
    depth: dict[str, int] = {}
    leads: dict[str, list[str]] = {}
    for arrow in picture.arrows:
        leads.setdefault(arrow.source, []).append(arrow.target)
    waiting = deque((target, 0) for target in leads.get("start", ()))
    for node in picture.nodes:
        if node.kind == "any":
            waiting.append((node.id, 0))
    while waiting:
        id, at = waiting.popleft()
        if id not in depth:
            depth[id] = at
            waiting.extend((target, at + 1) for target in leads.get(id, ()))
    last = max(depth.values(), default=0)
    for node in picture.nodes:
        if node.kind == "end":
            depth[node.id] = max(last, 1)
        depth.setdefault(node.id, last)
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for node in picture.nodes:
        layers[depth[node.id]].append(node)
    return [layer for layer in layers if layer]


def _is_taken(arrow: Arrow, boxes: dict[str, _Box], steps: Collection[tuple[str, str]]) -> bool:
    source, target = boxes.get(arrow.source), boxes[arrow.target]
    return source is not None and (source.node.key, target.node.key) in steps


def _box(box: _Box, *, lit: bool, spoke: bool) -> str:
    node = box.node
    round_ = _HEIGHT / 2 if node.kind == "end" else 6
    classes = f"node {node.kind}" + (" spoke" if spoke else "") + (" current" if lit else "")
    return (
        f'<g class="{classes}"><title>{_text(node.label)}</title>'
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{_WIDTH}" height="{_HEIGHT}"'
        f' rx="{round_:.0f}"/>'
        f'<text x="{box.middle:.1f}" y="{box.y + _HEIGHT / 2 + 5:.1f}" text-anchor="middle">'
        f"{_text(_short(node.label))}</text></g>"
    )


def _arrow(arrow: Arrow, boxes: dict[str, _Box], number: int, *, taken: bool) -> str:
    target = boxes[arrow.target]
    kind = ("arrow dashed" if arrow.dashed else "arrow") + (" taken" if taken else "")
    if arrow.source == "start":
        path = f"M{target.middle:.1f} {target.y - 22:.1f}L{target.middle:.1f} {target.y - 2:.1f}"
        return f'<path class="{kind}" d="{path}" marker-end="url(#tip)"/>'
    source = boxes[arrow.source]
    path, x, y = _curve(source, target, number)
    words = _short(arrow.label.removesuffix("."), _WORDS)
    label = f'<text class="mark" x="{x:.1f}" y="{y:.1f}">{_text(words)}</text>'
    shown = label if words else ""
    return (
        f"<g><title>{_text(arrow.label or 'then')}</title>"
        f'<path class="{kind}" d="{path}" marker-end="url(#tip)"/>{shown}</g>'
    )


def _curve(source: _Box, target: _Box, number: int) -> tuple[str, float, float]:
    """The path between two boxes, and the position of its label.

    `number` moves parallel arrows apart.
    """
    aside = (number % 5 - 2) * 9
    if source is target:
        x, y = source.x + _WIDTH, source.y + _HEIGHT / 2
        return (
            f"M{x:.1f} {y - 8:.1f}C{x + 34:.1f} {y - 20:.1f} {x + 34:.1f} {y + 20:.1f}"
            f" {x + 2:.1f} {y + 8:.1f}",
            x + 28,
            y,
        )
    if target.y > source.y:
        x1, y1 = source.middle + aside, source.y + _HEIGHT
        x2, y2 = target.middle + aside, target.y - 2
    elif target.y < source.y:
        x1, y1 = source.middle + aside, source.y
        x2, y2 = target.middle + aside + 14, target.y + _HEIGHT + 2
    else:
        right = target.x > source.x
        x1, y1 = (source.x + _WIDTH, source.y + 20) if right else (source.x, source.y + 20)
        x2, y2 = (target.x - 2, target.y + 20) if right else (target.x + _WIDTH + 2, target.y + 20)
        bend = y1 + (_HEIGHT + 6 + aside if not right else aside)
        path = f"M{x1:.1f} {y1:.1f}Q{(x1 + x2) / 2:.1f} {bend:.1f} {x2:.1f} {y2:.1f}"
        return path, (x1 + x2) / 2, (y1 + bend) / 2
    half = (y1 + y2) / 2
    path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {half:.1f} {x2:.1f} {half:.1f} {x2:.1f} {y2:.1f}"
    return path, (x1 + x2) / 2 + 5, half


def _name_of(picture: Picture, agent_id: str) -> str:
    found = (
        node.label for node in picture.nodes if node.kind == "speaker" and node.key == agent_id
    )
    return next(found, "")


def _short(label: str, longest: int = _LONGEST) -> str:
    """The part of a label that has room; its tooltip has the whole text."""
    line = " ".join(label.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _text(text: str) -> str:
    return escape(visible(text))
