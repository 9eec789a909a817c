"""The command line as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent_adapter
from agent_adapter.cli.output import plain

from .conftest import Run

COMMANDS = [
    ("demo",),
    ("tools", "list"),
    ("tools", "show"),
    ("tools", "call"),
    ("tools", "resume"),
    ("tools", "check"),
    ("approvals", "list"),
    ("approvals", "show"),
    ("approvals", "approve"),
    ("approvals", "deny"),
    ("ledger", "show"),
    ("ledger", "verify"),
    ("ledger", "in-doubt"),
    ("ledger", "resolve"),
    ("writes", "stop"),
    ("writes", "allow"),
    ("writes", "status"),
    ("db", "backup"),
    ("db", "prune"),
    ("integrations",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(run: Run, command: tuple[str, ...]) -> None:
    """`--help` shows how the command is typed, and every command can print JSON."""
    ran = run(*command, "--help")
    assert ran.code == 0
    assert f"Example: agent-adapter {' '.join(command)}" in " ".join(ran.out.split())
    assert "--json" in ran.out


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
