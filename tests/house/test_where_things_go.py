"""CONTRIBUTING's table is true: an addition works and touches only the files that its row names."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.modules import ROOT

ROWS = dict(
    re.findall(r"^\| an? ([^|]+?) \| ([^|]+?) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
)


class Tree:
    """A copy of the package, changed and run; it knows which files were touched."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched: set[str] = set()
        shutil.copytree(
            ROOT / "agent_adapter",
            root / "agent_adapter",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        shutil.copy(ROOT / "pyproject.toml", root)

    def write(self, path: str, text: str) -> None:
        """A new file."""
        self.touched.add(path)
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def insert(self, path: str, before: str, line: str) -> None:
        """One line more, before the first line that starts with `before`."""
        self.touched.add(path)
        lines = (self.root / path).read_text().splitlines(keepends=True)
        at = next(number for number, text in enumerate(lines) if text.startswith(before))
        lines.insert(at, line + "\n")
        (self.root / path).write_text("".join(lines))

    def first_in(self, path: str, function: str, line: str) -> None:
        """One line more, the first of a function after its docstring."""
        self.touched.add(path)
        source = (self.root / path).read_text()
        (found,) = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.AsyncFunctionDef) and node.name == function
        ]
        lines = source.splitlines(keepends=True)
        lines.insert(found.body[1].lineno - 1, f"    {line}\n")
        (self.root / path).write_text("".join(lines))

    def run(self, code: str) -> str:
        """What a program prints that runs with this tree, installed as `make setup` would."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text())["project"]
        info = self.root / "agent_adapter-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agent-adapter\nVersion: 0.1.0")
        (info / "entry_points.txt").write_text(
            "\n".join(
                f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items())
                for group, entries in project["entry-points"].items()
            )
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root), "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A copy to change."""
    return Tree(tmp_path)


def _allowed(row: str) -> tuple[str, ...]:
    """The files and folders that a row names."""
    return tuple(re.findall(r"`([\w./]+(?:/|\.py|\.toml))`", ROWS[row]))


def _touches_only(tree: Tree, row: str) -> bool:
    return all(path.startswith(_allowed(row)) for path in tree.touched)


def test_a_store(tree: Tree) -> None:
    """A folder and an entry point: `open_store` knows the scheme."""
    tree.write(
        "agent_adapter/store/scratch/__init__.py",
        '"""A store under another scheme."""\n\n'
        "from agent_adapter.store.memory import MemoryStore\n\n\n"
        "def open_scratch(url, *, clock, key):\n"
        '    """A fresh store."""\n'
        "    return MemoryStore(clock=clock, key=key)\n",
    )
    tree.insert(
        "pyproject.toml", "sqlite =", 'scratch = "agent_adapter.store.scratch:open_scratch"'
    )
    code = "import agent_adapter as aa; print(type(aa.open_store('scratch://')).__name__)"
    assert tree.run(code) == "MemoryStore\n"
    assert _touches_only(tree, "store")


def test_a_channel_type(tree: Tree) -> None:
    """A module and an entry point: a hub knows the type."""
    tree.write(
        "agent_adapter/network/adapters/briefing.py",
        '"""`briefing`: a conversation under another name."""\n\n'
        "from dataclasses import replace\n\n"
        "from agent_adapter.network.adapters.conversation import ConversationAdapter\n\n\n"
        "class BriefingAdapter(ConversationAdapter):\n"
        '    """A conversation."""\n\n'
        "    manifest = replace(ConversationAdapter.manifest, type='briefing')\n",
    )
    tree.insert(
        "pyproject.toml",
        "conversation =",
        'briefing = "agent_adapter.network.adapters.briefing:BriefingAdapter"',
    )
    code = (
        "from agent_adapter.network.adapters import AdapterRegistry;"
        "print(AdapterRegistry().get('briefing').manifest.type)"
    )
    assert tree.run(code) == "briefing\n"
    assert _touches_only(tree, "channel type")


def test_a_command(tree: Tree) -> None:
    """A module and a line: the program runs the command."""
    tree.write(
        "agent_adapter/cli/hello.py",
        '"""`agent-adapter hello`."""\n\nimport typer\n\napp = typer.Typer()\n\n\n'
        '@app.command("hello")\ndef hello() -> int:\n    """Greet."""\n'
        '    print("hello")\n    return 0\n',
    )
    tree.insert("agent_adapter/cli/app.py", '    "demo",', '    "hello",')
    assert tree.run("from agent_adapter.cli.app import run; run(['hello'])") == "hello\n"
    assert _touches_only(tree, "command")


STEP = """\"\"\"A step that refuses.\"\"\"

from agent_adapter.core.errors import GuardrailBlocked


def check(call):
    \"\"\"Refuse a call.\"\"\"
    if {condition}:
        raise GuardrailBlocked(f"{{call.spec.name}}: not now")
"""
LOOK = """
import agent_adapter as aa

@aa.tool(effects="read"{option})
def look() -> str:
    "Look."
    return "seen"

try:
    print(aa.call(look))
except aa.GuardrailBlocked as error:
    print(error)
"""


STEPS = {"stages": "prepare", "pipeline": "run_call"}
"""The lists of steps: before a person is asked, and after."""


def _add_step(tree: Tree, module: str, condition: str) -> None:
    tree.write("agent_adapter/exec/curfew.py", STEP.format(condition=condition))
    path = f"agent_adapter/exec/{module}.py"
    tree.insert(path, "from agent_adapter.exec.", "from agent_adapter.exec import curfew")
    tree.first_in(path, STEPS[module], "curfew.check(call)")


@pytest.mark.parametrize("module", STEPS)
def test_a_policy_step(tree: Tree, module: str) -> None:
    """A module and a line: each call passes the step."""
    _add_step(tree, module, "True")
    assert "look: not now" in tree.run(LOOK.format(option=""))
    assert _touches_only(tree, "policy step")


def test_a_per_tool_option(tree: Tree) -> None:
    """A field that a step reads: a tool may be registered with it."""
    _add_step(tree, "stages", "call.spec.closed_today")
    tree.touched.clear()
    tool = "agent_adapter/core/tool.py"
    tree.insert(tool, "    once_key: ", "    closed_today: bool = False")
    assert "look: not now" in tree.run(LOOK.format(option=", closed_today=True"))
    assert _touches_only(tree, "per-tool option")
