"""`agent-adapter graph`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_adapter.network import (
    AgentTarget,
    ContextEquals,
    FromSpeaker,
    TerminateTarget,
    Transition,
    TransitionGraph,
)

from .conftest import Run

OWN = '''
from dataclasses import dataclass
from typing import ClassVar

from agent_adapter.network import TransitionCondition, register_condition


@dataclass(slots=True)
class FullMoon(TransitionCondition):
    """Fires at full moon."""

    name: ClassVar[str] = "full_moon_of_the_cli"

    def evaluate(self, state, envelope):
        return False


register_condition(FullMoon)
'''


@pytest.fixture
def pipeline(run: Run) -> str:
    """A graph without a fault, in a file."""
    Path("pipeline.json").write_text(TransitionGraph.sequence(["a", "b", "c"]).dumps())
    return "pipeline.json"


def test_check_of_a_good_graph(run: Run, pipeline: str) -> None:
    """What is only worth knowing does not fail the check, not even a strict one."""
    ran = run("graph", "check", pipeline, "--strict", "--json")
    assert ran.code == 0
    assert {item["severity"] for item in ran.json} <= {"info"}


def test_check_finds_a_stranger(run: Run, pipeline: str) -> None:
    """A speaker that does not take part would be refused: exit code 1."""
    ran = run("graph", "check", pipeline, "--participant", "a", "--participant", "b", "--json")
    assert ran.code == 1
    assert "error" in {item["severity"] for item in ran.json}


def test_warnings_fail_when_strict(run: Run) -> None:
    """A priority the wrong way round is a warning; `--strict` makes it fail."""
    graph = TransitionGraph(
        "a",
        [
            Transition(FromSpeaker("a"), AgentTarget("b")),
            Transition(FromSpeaker("b"), AgentTarget("a")),
            Transition(ContextEquals("done", True), TerminateTarget("done"), priority=100),
        ],
        TerminateTarget("over"),
    )
    Path("loop.json").write_text(graph.dumps())
    findings = run("graph", "check", "loop.json", "--json")
    assert findings.code == 0
    assert findings.json
    assert run("graph", "check", "loop.json", "--strict").code == 1


def test_check_reads_knobs(run: Run) -> None:
    """A file of a channel's knobs has its graph under `graph`."""
    knobs = {"graph": TransitionGraph.sequence(["a", "b"]).to_dict(), "context_vars": {}}
    Path("knobs.json").write_text(json.dumps(knobs))
    assert run("graph", "check", "knobs.json").code == 0


def test_own_conditions_are_imported(run: Run) -> None:
    """An unknown condition is named; `--import` loads the module that registers it."""
    data = TransitionGraph.sequence(["a", "b"]).to_dict()
    data["transitions"][0]["when"] = {"name": "full_moon_of_the_cli", "args": {}}
    Path("own.json").write_text(json.dumps(data))
    Path("own.py").write_text(OWN)
    ran = run("graph", "check", "own.json")
    assert ran.code == 1
    assert "full_moon_of_the_cli" in ran.err
    assert run("graph", "draw", "own.json", "--import", "own.py").code == 0


def test_draw(run: Run, pipeline: str) -> None:
    """The drawing is a Mermaid flowchart with the names that were given."""
    out = run("graph", "draw", pipeline, "--name", "a=researcher").out
    assert out.startswith("flowchart")
    assert "researcher" in out


@pytest.mark.parametrize(
    ("file", "text", "code", "said"),
    [
        ("none.json", None, 2, "cannot be read"),
        ("bad.json", "{", 1, "is not JSON"),
        ("list.json", "[]", 1, "graph"),
    ],
)
def test_bad_files(run: Run, file: str, text: str | None, code: int, said: str) -> None:
    """A file that holds no graph is an error that names it, and says why."""
    if text is not None:
        Path(file).write_text(text)
    ran = run("graph", "check", file)
    assert ran.code == code
    assert said in ran.err


def test_a_name_without_an_id(run: Run, pipeline: str) -> None:
    """`--name` is an id and a name."""
    assert run("graph", "draw", pipeline, "--name", "researcher").code == 2
