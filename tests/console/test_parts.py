"""The console's parts on their own: forms, drawings, rates, paths."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter.console.argument_form import fields_of, read_form
from agent_adapter.console.graph_svg import graph_svg
from agent_adapter.console.pages import local_path
from agent_adapter.console.problems import Problem
from agent_adapter.core.rate import TokenBucket
from agent_adapter.flow.graph import (
    AgentTarget,
    Always,
    FromSpeaker,
    RoundRobinTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.flow.picture import picture_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(min_size=1), json_values, max_size=5))
def test_a_form_that_nobody_touched_changes_nothing(arguments: dict[str, Any]) -> None:
    """Whatever the arguments are, and however a browser writes line ends."""
    fields = fields_of(arguments)
    form = {f"arg:{each.name}": each.text.replace("\n", "\r\n") for each in fields}
    assert read_form(arguments, fields, form) == arguments
    assert read_form(arguments, fields, {}) == arguments


def test_a_secret_is_no_field() -> None:
    """Its mask goes back as it came; what a form says in its place is not heard."""
    masked = {"key": {"$secret": "ab"}, "n": 1}
    fields = fields_of(masked)
    assert fields[0].kind == "masked"
    assert read_form(masked, fields, {"arg:key": "mine", "arg:n": "2"}) == {**masked, "n": 2}


def test_an_optional_argument_can_be_left_out_and_added() -> None:
    """By an empty field, and by a filled one."""
    schema = {"properties": {"n": {"type": "integer"}, "m": {"type": "integer"}}, "required": []}
    fields = fields_of({"n": 1}, schema)
    assert read_form({"n": 1}, fields, {"arg:n": "", "arg:m": "7"}) == {"m": 7}


@pytest.mark.parametrize("sent", ["x", "1e999", "[1", "Infinity"])
def test_a_number_that_is_none_is_named(sent: str) -> None:
    """With its field."""
    fields = fields_of({"price": 1.5})
    with pytest.raises(Problem, match=r"price: .* is not a number"):
        read_form({"price": 1.5}, fields, {"arg:price": sent})


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_a_drawing_is_well_formed_and_lights_one_node(size: int) -> None:
    """With every node inside its frame, and nothing but shapes and text."""
    ids = [f"<agent & {n}>\u202e" for n in range(size)]
    rules = [
        Transition(FromSpeaker(a), AgentTarget(b)) for a in ids[:6] for b in (ids[0], ids[-1], a)
    ]
    graph = TransitionGraph(ids[0], [*rules, Transition(Always(), RoundRobinTarget())], max_turns=3)
    text = graph_svg(picture_of(graph, {}), ids[-1])
    root = ElementTree.fromstring(text)
    lit = [each for each in root.iter("g") if "current" in each.get("class", "")]
    assert len(lit) == 1 and "\u202e" not in text
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for box in root.iter("rect"):
        assert 0 <= float(box.get("x", -1)) <= width - 150
        assert 0 <= float(box.get("y", -1)) <= height - 40
    tags = {each.tag for each in root.iter()}
    assert tags <= {"svg", "title", "desc", "defs", "marker", "path", "g", "rect", "text"}


def test_rates_let_through_what_they_say() -> None:
    """So many at once, then as time goes by; each key for itself."""
    now = [0.0]
    rates = TokenBucket(burst=2, per_minute=60, clock=lambda: now[0])
    assert [rates.wait("a") for _ in range(3)] == [0.0, 0.0, 1.0]
    assert rates.wait("b") == 0.0
    now[0] += 1.0
    assert rates.wait("a") == 0.0 and rates.wait("a") > 0


@given(st.text())
def test_the_way_back_is_always_here(text: str) -> None:
    """Nothing that a browser could read as another site."""
    path = local_path(text)
    assert path.startswith("/") and not path.startswith("//") and "\\" not in path
