"""AgentDojo's user tasks through real agents: the numbers that must hold."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("agentdojo") is None, reason="agentdojo is not installed"
    ),
]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """One run of the workload, as a user starts it."""
    command = [sys.executable, "-m", "workloads.agentdojo", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    assert done.returncode == 0, found.get("problems", done.stderr)
    return found


def test_registry_holds_every_tool_of_every_suite(report: dict[str, Any]) -> None:
    """One registry holds the 74 tools of the four suites, 69 functions among them."""
    assert report["tools"] == {"workspace": 24, "travel": 28, "banking": 11, "slack": 11}
    assert (report["registry"], report["functions"]) == (74, 69)


def test_tools_are_what_their_authors_wrote(report: dict[str, Any]) -> None:
    """Every tool has AgentDojo's own parameters, texts and required names, and none it injects."""
    assert report["differences"] == []


@pytest.mark.parametrize("framework", ["ag2", "agno", "langgraph"])
def test_every_user_task_passes_its_own_checker(report: dict[str, Any], framework: str) -> None:
    """All 97 user tasks pass the suite's own checker through the framework."""
    run = report["frameworks"][framework]
    assert (len(run["tasks"]), run["passed"]) == (97, 97)


@pytest.mark.parametrize("framework", ["ag2", "agno", "langgraph"])
def test_every_call_is_in_the_ledger(report: dict[str, Any], framework: str) -> None:
    """The 339 calls of the ground truth are in the ledger, all of them ended ok, over 97 runs."""
    ledger = report["frameworks"][framework]["ledger"]
    assert report["frameworks"][framework]["expected_calls"] == 339
    assert (ledger["calls"], ledger["calls_ok"], ledger["runs"]) == (339, 339, 97)


@pytest.mark.parametrize("framework", ["ag2", "agno", "langgraph"])
def test_ledger_verifies(report: dict[str, Any], framework: str) -> None:
    """The ledger's chains verify after the run."""
    assert report["frameworks"][framework]["ledger"]["verified"] is True


def test_held_payment_waits_for_a_person(report: dict[str, Any]) -> None:
    """Each framework's payment is held in the inbox, and no money moves before a decision."""
    asked = report["held"]["ask"]
    names = ("ag2", "agno", "langgraph")
    assert [len(asked[name]) for name in names] == [1, 1, 1]
    assert [asked[f"{name}_paid"] for name in names] == [0, 0, 0]


def test_approved_payment_runs_once_after_a_restart(report: dict[str, Any]) -> None:
    """A third process runs each approved payment once, and a second try pays nothing."""
    for call in report["held"]["resume"]["resumed"]:
        assert (call["paid"], call["paid_after_second_try"], call["checker"]) == (1, 1, True)
        assert call["second_try"].startswith("recorded result: ")
    assert len(report["held"]["resume"]["resumed"]) == 3
