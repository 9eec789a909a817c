"""The command line as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import agent_adapter
from agent_adapter.cli.app import app
from agent_adapter.cli.output import plain

from ._reference import MARK, PAGE, reference
from .conftest import Run

PROGRAM: Any = typer.main.get_command(app)


def _leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(_leaves(PROGRAM))
TESTS = "\n".join(file.read_text() for file in sorted(Path(__file__).parent.glob("test_*.py")))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(run: Run, command: tuple[str, ...]) -> None:
    """`--help` shows how the command is typed, and every command can print JSON."""
    ran = run(*command, "--help")
    assert ran.code == 0
    assert f"Example: agent-adapter {' '.join(command)}" in " ".join(ran.out.split())
    assert "--json" in ran.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_tried(command: tuple[str, ...]) -> None:
    """No command is without a test that runs it."""
    typed = ", ".join(f'"{word}"' for word in command)
    assert re.search(rf"\({re.escape(typed)}[,)]", TESTS) or f"({typed}" in TESTS


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_documented(command: tuple[str, ...]) -> None:
    """The page on the command line shows each one as it is typed."""
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert re.search(rf"^agent-adapter {' '.join(command)}\b", page, re.MULTILINE)


def completing(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """The program, told its shell instead of looking for one among its parents."""
    told = {"HOME": str(home), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    return subprocess.run(
        [sys.executable, "-m", "agent_adapter.cli", *words],
        env=os.environ | told,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(tmp_path: Path, shell: str) -> None:
    """`--show-completion` prints what a shell reads to complete `agent-adapter`."""
    done = completing("--show-completion", shell, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "_AGENT_ADAPTER_COMPLETE" in done.stdout


def test_completion_is_installed(tmp_path: Path) -> None:
    """`--install-completion` writes to the shell's own files under HOME."""
    done = completing("--install-completion", "bash", home=tmp_path)
    assert done.returncode == 0, done.stderr
    written = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert any("_AGENT_ADAPTER_COMPLETE" in text for text in written)


def test_words_are_completed() -> None:
    """A shell that asks gets the commands that begin so."""
    asked = {
        "_AGENT_ADAPTER_COMPLETE": "complete_bash",
        "COMP_WORDS": "agent-adapter approvals de",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "agent_adapter.cli"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["deny"]


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    """`agent-adapter` alone lists the commands and the exit codes."""
    ran = run()
    assert ran.code == 0
    assert all(command[0] in ran.out for command in COMMANDS)
    assert "Exit codes" in ran.out


def test_version(run: Run) -> None:
    """`--version` names the distribution's version."""
    assert run("--version").out.strip() == f"agent-adapter {agent_adapter.__version__}"


@pytest.mark.parametrize(
    "args", [("nothing",), ("tools",), ("tools", "list"), ("tools", "list", "x", "--odd")]
)
def test_a_wrong_command_line_is_one_line_and_code_2(run: Run, args: tuple[str, ...]) -> None:
    """Usage errors say what is wrong on one line of stderr."""
    ran = run(*args)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("agent-adapter: ")


def test_help_loads_no_store_and_no_framework() -> None:
    """`--help` is quick because nothing of weight is imported for it."""
    script = (
        "import sys\n"
        "from agent_adapter.cli import main\n"
        "main(['--help'])\n"
        "heavy = {'sqlalchemy', 'alembic', 'ag2', 'agno', 'jsonschema'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_console_script_ends_with_the_command_s_code() -> None:
    """A shell sees the exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "agent_adapter.cli", "tools", "list", "none.py", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert '"kind": "refused"' in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe", "größe"),
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\u200d", "\\u200d"),
        ("\u00a0", "\\u00a0"),
        ("\ud800", "\\ud800"),
        ("\ufe0f\u3164", "\\ufe0f\\u3164"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_printed_text_is_inert(text: str, shown: str) -> None:
    """What could hide or steer the terminal is printed as an escape."""
    assert plain(text) == shown


def test_the_reference_is_that_of_the_program() -> None:
    """The page has every command with its options: `python -m tests.cli._reference` writes it."""
    written = PAGE.read_text().partition(MARK)[2]
    assert written == "\n" + reference()
