"""What can be read at one sitting."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.house.modules import ROOT, modules, statements

LONGEST_FUNCTION = 60
LONGEST_MODULE = 400
EXCEPTIONS = {
    "agent_adapter.cli.serve.command": "its parameters are the options, with their help",
}
"""Functions that may be longer, and why."""


def test_modules_stay_small() -> None:
    """No module of the package passes 400 lines."""
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
        for path in (ROOT / "agent_adapter").rglob("*.py")
    }
    assert {path: length for path, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_functions_fit_on_a_screen() -> None:
    """No function passes 60 lines, its docstring included, unless it says here why."""
    long = {
        f"{module}.{node.name}": length
        for module, tree in modules().items()
        if ".migrations." not in module  # a migration is a list of statements, written once
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert {name: length for name, length in long.items() if name not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() <= long.keys()


def test_the_size_of_each_room_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Statements per room: a change that makes a room grow shows by how much."""
    rooms: Counter[str] = Counter()
    for module, tree in modules().items():
        rooms[[*module.split("."), ""][1]] += statements(tree)
    with capsys.disabled():
        print("\nstatements:", ", ".join(f"{room or '.'} {n:,}" for room, n in rooms.items()))
        print(f"statements in all: {rooms.total():,}")
    assert set(rooms) == {
        "", "__main__", "cli", "console", "core", "exec", "flow", "integrations", "network",
        "notify", "store",
    }  # fmt: skip
