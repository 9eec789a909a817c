"""What is printed where: a terminal, a pipe, JSON."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_adapter.cli import output, streams
from agent_adapter.cli.pager import pager_of

from .conftest import Run


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stdout as a terminal without colours or a pager."""
    made = Terminal()
    for name, value in (("PAGER", "cat"), ("NO_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    return made


IDS = ["apr_" + "0123456789abcdef" * 2, "run_" + "x" * 100]


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_an_id_is_whole_on_one_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """At every width of the terminal: other columns give way, or each row becomes lines."""
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [(IDS[0], IDS[1], "words and more words " * 20, "2026-03-01T12:00:00Z")]
    with contextlib.redirect_stdout(terminal):
        output.print_list([1], ("id", "run", "why", "at"), rows, empty="", as_json=False)
    shown = terminal.getvalue()
    for id in IDS:
        assert id in shown
    assert "2026" in shown and "words" in shown


def test_columns_sets_the_width(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is no wider than `COLUMNS` says."""
    monkeypatch.setenv("COLUMNS", "60")
    rows = [("apr_1", "words and more words " * 20)]
    with contextlib.redirect_stdout(terminal):
        output.print_list([1], ("id", "why"), rows, empty="", as_json=False)
    assert max(map(len, terminal.getvalue().splitlines())) <= 60


def test_a_pipe_gets_lines_with_tabs(run: Run, held: str) -> None:
    """One line for each record, whole, without a heading or colours."""
    [line] = run("approvals", "list").out.splitlines()
    cells = line.split("\t")
    assert (cells[0], cells[1], cells[2]) == (held, "pending", "refund")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", cells[-1])


def test_a_text_with_tabs_stays_one_cell(run: Run) -> None:
    """What others wrote cannot add a column or a line."""
    run("tools", "call", "shop.py", "refund", "order_id=A\t\n1", "amount=1")
    [line] = run("approvals", "list").out.splitlines()
    assert line.count("\t") == 5


NOISY = """
import atexit, os, subprocess, sys, threading
import agent_adapter as aa
print("imported")
os.write(1, b"raw\\n")
subprocess.run([sys.executable, "-c", "print('child')"])
registry = aa.ToolRegistry()
atexit.register(print, "bye")

@registry.tool(effects="read")
def look(n: int) -> int:
    "Look."
    print("looking")
    sys.stdout.write("more")
    threading.Thread(target=print, args=("thread",)).start()
    return n
"""


@pytest.mark.parametrize(
    "args",
    [
        ("tools", "call", "noisy.py", "look", "n=1", "--json"),
        ("tools", "list", "noisy.py", "--json"),
        ("tools", "show", "noisy.py", "look", "--json"),
        ("tools", "check", "noisy.py", "--json"),
        ("tools", "call", "noisy.py", "look", "n=x", "--json"),
    ],
    ids=lambda args: " ".join(args[1:3]),
)
def test_stdout_has_only_json(run: Run, tmp_path: Path, args: tuple[str, ...]) -> None:
    """Whatever a target prints, from wherever and whenever, is on stderr."""
    (tmp_path / "noisy.py").write_text(NOISY)
    done = subprocess.run(
        [sys.executable, "-m", "agent_adapter", *args], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(("{", "["))
    output.json.loads(done.stdout)
    for printed in ("imported", "raw", "child", "bye"):
        assert printed in done.stderr


def test_the_same_in_one_process(run: Run, tmp_path: Path) -> None:
    """A caller of `main` gets stdout back."""
    (tmp_path / "noisy.py").write_text(NOISY.replace("atexit.register", "(lambda *said: None)"))
    before = sys.stdout
    assert run("tools", "call", "noisy.py", "look", "n=1", "--json").json == {"result": 1}
    assert sys.stdout is before and streams.out() is before


def test_a_reader_may_leave(run: Run, held: str) -> None:
    """`… | head` is no error."""
    program = f"{sys.executable} -m agent_adapter ledger show --json | head -c 1"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[", "")


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"PAGER": "cat"}, None),
        ({"PAGER": ""}, None),
        ({"PAGER": "no-such-pager -x"}, None),
        ({"PAGER": f"{sys.executable} -c 1"}, [sys.executable, "-c", "1"]),
        ({"AGENT_ADAPTER_PAGER": "cat", "PAGER": sys.executable}, None),
    ],
)
def test_which_pager(environ: dict[str, str], found: list[str] | None) -> None:
    """Ours before the general one; `cat`, nothing, or one that is not there is none."""
    assert pager_of(environ) == found


def test_long_output_is_paged(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than the terminal goes through the pager, whole."""
    shown: list[str] = []
    monkeypatch.setattr("agent_adapter.cli.pager._page", lambda command, text: shown.append(text))
    monkeypatch.setenv("PAGER", sys.executable)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    for count in (5, 100):
        rows = [(f"apr_{n:03}", "x") for n in range(count)]
        with contextlib.redirect_stdout(terminal):
            output.print_list(rows, ("id", "why"), rows, empty="", as_json=False)
    assert "apr_004" in terminal.getvalue() and "apr_099" not in terminal.getvalue()
    assert len(shown) == 1 and "apr_099" in shown[0]


def test_python_dash_m(tmp_path: Path) -> None:
    """`python -m agent_adapter` is the program."""
    done = subprocess.run(
        [sys.executable, "-m", "agent_adapter", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert done.stdout.startswith("agent-adapter ")
