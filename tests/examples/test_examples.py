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


def test_mcp_tools(tmp_path: Path) -> None:
    """The cheap flight is booked, the dear one refused; another program uses the same tools."""
    pytest.importorskip("mcp")
    printed = _run("mcp_tools.py", tmp_path)
    assert "book_flight: booked Rome-1 for 120.00" in printed
    assert '"kind": "approval-denied"' in printed
    assert "imported travel_find_flights, travel_book_flight: ['Oslo-1', 'Oslo-2']" in printed


def test_fastmcp_tools(tmp_path: Path) -> None:
    """One door is opened, the other refused; the server's own tool runs under our executor."""
    pytest.importorskip("fastmcp")
    printed = _run("fastmcp_tools.py", tmp_path)
    assert "unlock: room 101 is open" in printed
    assert '"kind": "approval-denied"' in printed
    assert "imported house_rules (untrusted): quiet after ten" in printed


def test_langchain_tools(tmp_path: Path) -> None:
    """The small room is booked, the large one refused by the reviewer."""
    pytest.importorskip("langchain")
    printed = _run("langchain_tools.py", tmp_path)
    assert 'book_room (success): "booked Lab 1 for 4"' in printed
    assert 'book_room (error): {"error": {"kind": "approval-denied"' in printed


def test_langgraph_tools(tmp_path: Path) -> None:
    """Three parallel calls: one runs at once, one is approved, one is denied."""
    pytest.importorskip("langgraph")
    printed = _run("langgraph_tools.py", tmp_path)
    assert printed.count("asked: transfer") == 2
    assert 'c2 transfer: "sent 5 to DE02"' in printed
    assert 'c3 transfer: {"error": {"kind": "approval-denied"' in printed


def test_autogen_tools(tmp_path: Path) -> None:
    """The small order is made, the large one refused by the reviewer."""
    pytest.importorskip("autogen_agentchat")
    printed = _run("autogen_tools.py", tmp_path)
    assert 'order (error: False): "ordered 5 x bolt"' in printed
    assert 'order (error: True): {"error": {"kind": "approval-denied"' in printed


def test_openai_tools(tmp_path: Path) -> None:
    """Strict's null takes the default; the small refund is paid, the large one refused."""
    pytest.importorskip("openai")
    printed = _run("openai_tools.py", tmp_path)
    assert 'tool: "12.50 EUR"' in printed
    assert 'tool: "refunded 12.50 for A1"' in printed
    assert '"kind": "approval-denied"' in printed


def test_anthropic_tools(tmp_path: Path) -> None:
    """One room is booked, the other refused; the SDK's runner ends with the same tools."""
    pytest.importorskip("anthropic")
    printed = _run("anthropic_tools.py", tmp_path)
    assert 't2: "booked blue on monday" (error: False)' in printed
    assert "approval-denied" in printed
    assert "runner: The blue room is yours" in printed


def test_google_genai_tools(tmp_path: Path) -> None:
    """One floor is opened, the other refused by the reviewer."""
    pytest.importorskip("google.genai")
    printed = _run("google_genai_tools.py", tmp_path)
    assert "open_windows: {'output': 'floor 1 is open'}" in printed
    assert "open_windows: {'error': {'kind': 'approval-denied'" in printed


def test_generic_tools(tmp_path: Path) -> None:
    """The loop pauses, goes on from what it kept, and orders once."""
    pytest.importorskip("openai")
    printed = _run("generic_tools.py", tmp_path)
    assert "[stock: 3]" in printed
    assert printed.count('[order_more: "ordered 100 of bolt"]') == 1
    assert "A hundred bolts are on their way." in printed


def test_deferred_approval(tmp_path: Path) -> None:
    """One process asks, another approves, a third runs the call; resuming again runs nothing."""
    printed = _run("deferred_approval.py", tmp_path)
    assert re.search(r"asked: apr_\w+", printed)
    runs = re.findall(r"resume: sent 5 to DE02 \(process (\d+)\)", printed)
    assert len(runs) == 2
    assert len(set(runs)) == 1
