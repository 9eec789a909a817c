"""Each example runs as a program, from an empty folder, and prints what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def _run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:__main__", str(EXAMPLES / name)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ag2_tools(tmp_path: Path) -> None:
    """The small refund is paid, the large one refused by the reviewer."""
    pytest.importorskip("ag2")
    printed = _run("ag2_tools.py", tmp_path)
    assert "refund: refunded 12.50 for A1" in printed
    assert '"kind": "approval-denied"' in printed


def test_agno_tools(tmp_path: Path) -> None:
    """The invoice inside the house is sent, the other refused by the reviewer."""
    pytest.importorskip("agno")
    printed = _run("agno_tools.py", tmp_path)
    assert 'send_invoice (confirmed: True): "sent R-7 to ann@example.com"' in printed
    assert "send_invoice (confirmed: False)" in printed


def test_deferred_approval(tmp_path: Path) -> None:
    """One process asks, another approves, a third runs the call; resuming again runs nothing."""
    printed = _run("deferred_approval.py", tmp_path)
    assert re.search(r"asked: apr_\w+", printed)
    runs = re.findall(r"resume: sent 5 to DE02 \(process (\d+)\)", printed)
    assert len(runs) == 2
    assert len(set(runs)) == 1
