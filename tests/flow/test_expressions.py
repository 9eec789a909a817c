"""ContextMatches: expressions over the channel's variables and the turn."""

from __future__ import annotations

import pytest

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow import (
    AgentTarget,
    ChannelFacts,
    ContextMatches,
    TerminateTarget,
    Transition,
    TransitionGraph,
    WorkflowState,
)
from tests.flow.builders import ending, packet, text

pytest.importorskip("cel")


@pytest.mark.parametrize(
    ("expression", "fires"),
    [
        ("context.score > 0.8 && context.route == 'x'", True),
        ("context.score > 0.95", False),
        ("turn_count >= 2", True),
        ("speaker == 'a' && tool == ''", True),
        ("body.contains('refund')", True),
        ("event_type == 'ag2.msg.text'", True),
        ("context.tags.exists(t, t == 'b')", True),
        ("has(context.missing)", False),
    ],
)
def test_an_expression_sees_the_variables_and_the_turn(expression: str, fires: bool) -> None:
    """It may name the variables, the count, the speaker, the tool and the body."""
    state = WorkflowState(context_vars={"score": 0.9, "route": "x", "tags": ["a", "b"]})
    state.turn_count = 2
    said = text("a", "a refund, please")
    assert ContextMatches(expression).evaluate(state, said) is fires


@pytest.mark.parametrize("expression", ["context.missing == 1", "context.n + 1", "context.n > 'a'"])
def test_an_expression_that_does_not_apply_does_not_fire(expression: str) -> None:
    """A missing key, types that do not go together or a result that is no bool: false."""
    assert not ContextMatches(expression).evaluate(WorkflowState(context_vars={"n": 1}), text("a"))


def test_an_expression_sees_the_routing_tool() -> None:
    """The packet's one routing call is `tool`."""
    routed = packet("a", {"kind": "handoff", "tool": "up"})
    assert ContextMatches("tool == 'up'").evaluate(WorkflowState(), routed)


@pytest.mark.parametrize(
    ("expression", "said"),
    [("1 +", "does not parse"), ("contxt.k == 1", "names contxt; it may name context")],
)
def test_a_wrong_expression_is_refused_at_load(expression: str, said: str) -> None:
    """Neither a syntax error nor a misspelt name waits for the first turn."""
    rule = {"when": {"name": "context_matches", "args": {"expression": expression}}}
    data = {"initial_speaker": "a", "transitions": [{**rule, "then": {"name": "stay"}}]}
    with pytest.raises(WorkflowGraphError, match=said):
        TransitionGraph.loads(data)


def test_a_graph_with_an_expression_comes_back_and_routes() -> None:
    """It is data like every other condition."""
    when = ContextMatches("context.n >= 2")
    graph = TransitionGraph("a", [Transition(when, TerminateTarget("enough"))], AgentTarget("a"))
    assert TransitionGraph.loads(graph.dumps()) == graph
    assert ending(graph, packet("a", set={"n": 1})) is None
    assert ending(graph, packet("a", set={"n": 2})) == "enough"


def test_an_open_expression_that_leads_to_a_privileged_participant_is_found() -> None:
    """Without any list of writers everybody can make it true."""
    graph = TransitionGraph("a", [Transition(ContextMatches("context.pay"), AgentTarget("c"))])
    codes = {item.code for item in graph.check(ChannelFacts(privileged=frozenset("c")))}
    assert {"open-route-to-privileged", "sticky-context"} <= codes
