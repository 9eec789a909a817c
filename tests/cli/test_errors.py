"""Exit codes, usage errors, `--debug`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


@pytest.mark.parametrize(
    ("args", "command"),
    [
        (("tools", "list"), "agent-adapter tools list --help"),
        (("approvals", "approve", "a", "b"), "agent-adapter approvals approve --help"),
        (("approvals", "list", "--state", "odd"), "agent-adapter approvals list --help"),
        (("ledger", "odd"), "agent-adapter ledger --help"),
        (("db", "prune", "--older"), "agent-adapter db prune --help"),
        (("odd",), "agent-adapter --help"),
    ],
)
def test_a_usage_error_names_its_help(run: Run, args: tuple[str, ...], command: str) -> None:
    """The help of the very command, not of the whole program."""
    ran = run(*args)
    assert ran.code == 2 and f"(see {command})" in ran.err


WAYS = '''
import sys
import agent_adapter as aa

registry = aa.ToolRegistry()


@registry.tool()
def act(how: str) -> str:
    """Act."""
    if how == "leave":
        sys.exit(0)
    if how == "stop":
        raise KeyboardInterrupt
    raise RuntimeError("the line broke")


@registry.tool(effects="read")
def look() -> str:
    """Look."""
    raise RuntimeError("no line")


@registry.tool(timeout=0.05)
async def wait() -> str:
    """Wait."""
    import asyncio

    await asyncio.sleep(60)
    return "late"
'''


@pytest.mark.parametrize(
    "call", [("act", "how=fail"), ("act", "how=leave"), ("wait",)], ids=lambda call: call[-1]
)
def test_a_write_left_in_doubt_is_4(run: Run, tmp_path: Path, call: tuple[str, ...]) -> None:
    """However it ended: the reason and the way out are on stderr, and the ledger agrees."""
    (tmp_path / "ways.py").write_text(WAYS)
    ran = run("tools", "call", "ways.py", *call, "--json")
    assert ran.code == 4, ran
    assert "outcome of the write is unknown" in ran.err and "ledger resolve call_" in ran.err
    assert ran.json["error"]["message"]
    assert run("ledger", "in-doubt").code == 4


def test_a_read_that_fails_is_1(run: Run, tmp_path: Path) -> None:
    """A read leaves nothing in doubt."""
    (tmp_path / "ways.py").write_text(WAYS)
    assert run("tools", "call", "ways.py", "look").code == 1


def test_debug_prints_the_traceback(run: Run, tmp_path: Path) -> None:
    """Anywhere in the line before `--`; without it there is none."""
    for args in (("--debug", "tools", "list", "none.py"), ("tools", "list", "none.py", "--debug")):
        ran = run(*args)
        assert ran.code == 1 and "Traceback" in ran.err and "no file none.py" in ran.err
    assert "Traceback" not in run("tools", "list", "none.py").err


def test_an_unexpected_error_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours is told with its class, and how to see more."""

    def broken(*args: object, **more: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("agent_adapter.store.opening.missing_store", broken)
    ran = run("verify")
    assert ran.code == 1 and len(ran.err.splitlines()) == 1
    assert "unexpected KeyError" in ran.err and "--debug" in ran.err
