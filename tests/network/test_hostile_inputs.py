"""Hostile inputs: nothing that a foreign party sends holds the event loop for a tenth of a second.

Each row is measured in CPU time of its own thread, the best of three, without any cache. What is
too expensive is refused.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agent_adapter.core.errors import (
    ProtocolError,
    ToolArgsInvalid,
    ToolDefinitionError,
    WorkflowGraphError,
)
from agent_adapter.core.schema.patterns import compiled
from agent_adapter.core.tool import ToolSpec
from agent_adapter.flow.admission import opening_state
from agent_adapter.flow.compiled import CompiledGraph, graph_hash
from agent_adapter.flow.expressions import compiled_expression
from agent_adapter.flow.findings import ChannelFacts
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.flow.state import WorkflowState
from agent_adapter.network.links.frames import decode_client_frame
from agent_adapter.network.links.operations import OPERATIONS
from tests.flow.builders import text as said

pytest.importorskip("cel")

LIMIT = 0.1
REFUSALS = (ProtocolError, ToolArgsInvalid, ToolDefinitionError, WorkflowGraphError, ValueError)

MANY = list(range(100))
VARIABLES: dict[str, Any] = {
    "i": MANY,
    "k": list(range(1000)),
    "most": list(range(3000)),
    "rows": [{"owner": "a", "n": 1}] * 300,
    "nest": [MANY] * 20,
    "map": {str(n): n for n in range(1000)},
    "long": "a" * 16_000,
    "tags": ["x"] * 50,
}
BODY = "ab" * 250_000


def nested(depth: int, body: str = "true", macro: str = "all") -> str:
    """An expression with `depth` macros in each other."""
    for level in range(depth):
        body = f"context.i.{macro}(x{level}, {body})"
    return body


EXPRESSIONS = {
    "four-all": nested(4),
    "five-all": nested(5),
    "nine-all": nested(9),
    "three-all": nested(3),
    "two-all-long-body": nested(2, " && ".join(["x0 >= 0"] * 100)),
    "four-exists": nested(4, "false", "exists"),
    "four-filter": nested(4, "true", "filter") + ".size() > 0",
    "three-map": nested(3, "1", "map") + ".size() > 0",
    "spaces-around-macros": nested(4).replace(".all(", " . all \n ("),
    "comment-in-macro": nested(4).replace(".all(", ".// x\nall("),
    "macro-in-range": "context.i.map(a, [context.k]).all(x, x.all(y, y.all(z, true)))",
    "literal-ranges": "[1,2,3,4,5,6,7,8,9,10].all(a, " * 3 + "true" + ")" * 3,
    "quadratic-map": "context.most.map(x, x).size() > 0",
    "quadratic-filter": "context.most.filter(x, true).size() > 0",
    "chained-maps": "context.k" + ".map(x, x)" * 40 + ".size() > 0",
    "doubling-text": "['a']" + ".map(x, x + x)" * 40 + "[0].size() > 0",
    "doubling-lists": "[[1]]" + ".map(x, x + x)" * 40 + "[0].size() > 0",
    "doubling-in-one": "context.i.map(x, " + "context.k + " * 50 + "context.k).size() > 0",
    "compare-lists": "context.k.all(x, context.most == context.most)",
    "compare-texts": "context.k.all(x, context.long == context.long)",
    "member-of-list": "context.most.all(x, x in context.most)",
    "member-of-map": "context.most.all(x, 'a' in context.map)",
    "search-in-body": "context.k.exists(x, body.contains('b' + 'c'))",
    "shadowed-root": "[context.most].map(context, context.all(a, context.all(b, true))).size() > 0",
    "pattern-counted": "body.matches('(a{100}){100}')",
    "pattern-counted-thrice": "body.matches('((a{100}){100}){10}')",
    "pattern-hidden": r"body.matches('((a\x7b100}){100}){10}')",
    "pattern-octal": r"body.matches('((a\173100}){100}){10}')",
    "pattern-raw": "body.matches(r'((a{100}){100}){10}')",
    "pattern-triple": "body.matches('''((a{100}){100}){10}''')",
    "pattern-from-variable": "body.matches(context.long)",
    "pattern-joined": "body.matches('(a{100}' + '){100}')",
    "pattern-window": "body.matches('(?:a|b)*a(?:a|b){15}c')",
    "pattern-windows": "body.matches('a.{40}b.{40}c')",
    "pattern-as-function": "matches(body, '(a{100}){100}')",
    "pattern-per-item": "context.k.exists(x, 'a'.matches('[a-z]*b[a-z]*c'))",
    "pattern-words": "body.matches(r'" + r"\w" * 60 + "$')",
    "parentheses": "(" * 1900 + "true" + ")" * 1900,
    "lists-in-lists": "[" * 1900 + "]" * 1900 + ".size() > 0",
    "not-not": "!" * 4000 + "true",
    "minus-minus": "-" * 4000 + "1 > 0",
    "ternaries": "true ? " * 500 + "true" + " : false" * 500,
    "sums-of-lists": "[1]" + " + [1]" * 600 + " == [1]",
    "many-macros": " && ".join(["context.i.all(x, true)"] * 150),
    "dots": "context" + ".a" * 2000,
    "unfinished-text": "'" + "a" * 4000,
    "backslashes": "'" + "\\" * 4000,
    "too-long": "true || " * 600 + "true",
}

PATTERNS = {
    "nested-plus": "(a+)+$",
    "nested-star": "(a*)*b",
    "alternatives": "(a|a)*b",
    "counted": "(a{1,100}){1,100}$",
    "counted-thrice": "((a{100}){100}){100}",
    "words": r"(\w{50}){50}",
    "dots": "a.{40}b.{40}c",
    "look-ahead": "^(?=(a+)+$)a*$",
    "back-reference": r"(a+)\1+$",
    "classes": "[ab]*a[ab]{12}c",
    "nested-groups": "(" * 200 + "a" + ")" * 200,
    "long": "a?" * 4000,
}


def taking(part: Any) -> dict[str, Any]:
    """The schema of one parameter."""
    return {"properties": {"p": part}}


def any_of(parts: list[Any]) -> dict[str, Any]:
    """A union."""
    return {"anyOf": parts}


def chain(depth: int) -> dict[str, Any]:
    """A schema whose references fan out: 2 to the power of `depth` ways."""
    parts = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {
        "$defs": parts | {f"d{depth}": {"type": "string"}},
        "properties": {"p": {"$ref": "#/$defs/d0"}},
    }


def deep_schema(levels: int) -> dict[str, Any]:
    """A schema of arrays in arrays."""
    part: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        part = {"type": "array", "items": part}
    return taking(part)


SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "fan-out": (chain(20), 1),
    "union-of-unions": (taking(any_of([any_of([{"type": "string"}] * 60)] * 60)), 1),
    "recursion": (
        taking({"$ref": "#/$defs/a"}) | {"$defs": {"a": any_of([{"$ref": "#/$defs/a"}])}},
        1,
    ),
    "deep": (deep_schema(2000), []),
    "many-patterns": (
        taking({"patternProperties": {f"a{n}.*b": {} for n in range(50)}}),
        {f"a{n}": n for n in range(1000)},
    ),
    "unique-items": (taking({"type": "array", "uniqueItems": True}), [[n] for n in range(5000)]),
    "enum": (taking({"enum": list(range(5000))}), "x"),
}


def framed(params: Any) -> str:
    """A request frame with these parameters."""
    return json.dumps({"kind": "request", "id": 1, "op": "post_envelope", "params": params})


def envelope(data: Any) -> dict[str, Any]:
    """The parameters of a message with this event data."""
    named = {"channel_id": "c", "sender_id": "a", "audience": None, "event_type": "x"}
    return {"envelope": named | {"event_data": data}}


FRAMES = {
    "brackets": "[" * 1_000_000,
    "braces": '{"a":' * 200_000,
    "closed-brackets": framed({"envelope": 0}).replace("0}", "[" * 400 + "]" * 400 + "}"),
    "lists": framed(envelope({"a": [[]] * 250_000})),
    "zeros": framed(envelope({"a": [0] * 250_000})),
    "objects": framed(envelope({str(n): {} for n in range(60_000)})),
    "unknown-fields": framed({str(n): 0 for n in range(60_000)}),
    "commas-in-text": framed(envelope({"text": "," * 500_000})),
    "brackets-in-text": framed(envelope({"text": "[" * 500_000})),
    "escapes": framed(envelope({"text": "\\" * 250_000})),
    "surrogates": framed(envelope({"text": "\ud800" * 80_000})),
    "digits": framed({"envelope": 0}).replace("0}", "9" * 500_000 + "}"),
    "exponent": framed({"envelope": 0}).replace("0}", "1e999999999}"),
    "not-a-number": framed({"envelope": float("nan")}),
    "fractions": framed(envelope({"a": [0.1] * 150_000})),
    "keys": framed(envelope({"k" * 500_000: 1})),
    "long-op": json.dumps({"kind": "request", "id": 1, "op": "x" * 900_000, "params": {}}),
    "long-kind": json.dumps({"kind": "x" * 900_000}),
    "audience": framed({"envelope": envelope({})["envelope"] | {"audience": ["a"] * 150_000}}),
    "adopted": framed(envelope({}) | {"adopted": ["a"] * 150_000}),
}


def rule(when: Any, priority: int = 0) -> dict[str, Any]:
    """A transition on this condition."""
    return {
        "when": when,
        "then": {"name": "agent", "args": {"agent_id": "b"}},
        "priority": priority,
    }


def equals(key: str, value: Any = 1) -> dict[str, Any]:
    """A condition on one variable."""
    return {"name": "context_equals", "args": {"key": key, "value": value}}


def negated(depth: int) -> dict[str, Any]:
    """A condition in so many negations."""
    part: dict[str, Any] = equals("k")
    for _ in range(depth):
        part = {"name": "not", "args": {"condition": part}}
    return part


def several(name: str, parts: list[Any]) -> dict[str, Any]:
    """A condition of several."""
    return {"name": name, "args": {"conditions": parts}}


def union(key: str, size: int, value: Any = 1) -> dict[str, Any]:
    """A condition on any of several variables."""
    return several("any_of", [equals(f"{key}{n}", value) for n in range(size)])


def speaker(agent_id: str) -> dict[str, Any]:
    """A condition on who spoke."""
    return {"name": "from_speaker", "args": {"agent_id": agent_id}}


def matching(expression: str) -> dict[str, Any]:
    """A condition on an expression."""
    return {"name": "context_matches", "args": {"expression": expression}}


GRAPHS = {
    "rules": [rule(equals(f"k{n}"), -n) for n in range(500)],
    "too-many-rules": [rule(equals(f"k{n}")) for n in range(5000)],
    "unions": [rule(union("k", 8, n), -n) for n in range(100)],
    "wide-union": [rule(union("k", 8000))],
    "negations": [rule(negated(30)), rule(negated(31)), rule(negated(29))],
    "deep-negations": [rule(negated(90))],
    "products": [rule(several("all_of", [union(f"{n}k", 2) for n in range(30)]))] * 3,
    "strangers": [rule(speaker(f"s{n}")) for n in range(500)],
    "expression": [rule(matching(nested(4)))],
    "expressions": [rule(matching(f"context.k.all(x, x >= {n})")) for n in range(200)],
}


def evaluate(text: str) -> None:
    """Compile an expression and evaluate it."""
    compiled_expression.cache_clear()
    compiled_expression(text).matches(
        {"context": VARIABLES, "body": BODY, "turn_count": 1, "speaker": "a", "tool": ""}
    )


def match(pattern: str) -> None:
    """Compile a pattern and match a long text."""
    compiled.cache_clear()
    compiled(pattern).matches("ab" * 10_000)


def check(case: tuple[dict[str, Any], Any]) -> None:
    """Read a schema and validate a value."""
    compiled.cache_clear()
    spec = ToolSpec.from_json_schema("t", "Does.", case[0], print)
    spec.validate({"p": case[1]})


def read(text: str) -> None:
    """Read a frame and the parameters of its request."""
    frame: Any = decode_client_frame(text)
    OPERATIONS["post_envelope"].read(frame.params)


def open_with(transitions: list[Any]) -> None:
    """Open a channel with a graph, and take its first turn."""
    compiled_expression.cache_clear()
    data = {"initial_speaker": "a", "transitions": transitions, "max_turns": 3}
    knobs = {"graph": data, "context_vars": VARIABLES}
    facts = ChannelFacts(participants=["a", "b"], opener="a")
    state, _ = opening_state(knobs, facts, creator_id="a")
    graph = CompiledGraph(TransitionGraph.from_dict(data), graph_hash(data))
    graph.decide(WorkflowState(["a", "b"], "a", context_vars=state.context_vars), said("a"))


def rows(kind: str, work: Callable[[Any], None], cases: Mapping[str, Any]) -> list[Any]:
    """The rows of one kind of input."""
    return [pytest.param(work, case, id=f"{kind}-{name}") for name, case in cases.items()]


ROWS = [
    *rows("cel", evaluate, EXPRESSIONS),
    *rows("pattern", match, PATTERNS),
    *rows("schema", check, SCHEMAS),
    *rows("frame", read, FRAMES),
    *rows("graph", open_with, GRAPHS),
]


def test_the_corpus_is_large() -> None:
    """It holds at least sixty inputs."""
    assert len(ROWS) >= 60


@pytest.mark.parametrize(("work", "case"), ROWS)
def test_no_input_holds_the_event_loop(work: Callable[[Any], None], case: Any) -> None:
    """T6: it is answered or refused within 100 ms of the thread's CPU time."""
    spent = []
    for _ in range(3):
        begun = time.thread_time()
        with contextlib.suppress(*REFUSALS):
            work(case)
        spent.append(time.thread_time() - begun)
    assert min(spent) <= LIMIT, f"{min(spent):.3f} s"


@pytest.mark.parametrize(
    "expression",
    [
        "context.i.all(x, x >= 0)",
        "context.i.all(x, context.i.all(y, x + y >= 0))",
        "context.rows.exists(r, r.owner == context.long)",
        "context.k.exists(x, x == 999)",
        "context.k.map(x, x).size() == 1000",
        "body.matches('^[ab]+$')",
    ],
)
def test_an_expression_of_ordinary_size_is_evaluated(expression: str) -> None:
    """A hundred items twice nested, or a thousand once, are within the bounds."""
    values = {name: VARIABLES[name] for name in ("i", "k", "rows") if name in expression}
    found = compiled_expression(expression).matches({"context": values, "body": "ab" * 500})
    assert found or "exists(r" in expression


def test_a_costly_expression_refuses_the_message() -> None:
    """A rule that is too expensive now is no rule that does not fire: nothing is routed past it."""
    data = {"initial_speaker": "a", "transitions": [rule(matching(nested(3)))]}
    graph = CompiledGraph(TransitionGraph.from_dict(data), "")
    with pytest.raises(WorkflowGraphError, match="more than 10,000 steps; compare fewer"):
        graph.decide(WorkflowState(["a", "b"], "a", context_vars={"i": MANY}), said("a"))
