"""Each network example runs as a program, from an empty folder, and prints what it promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_examples import _run

OUTCOMES = Path(__file__).parents[2] / "docs/network/patterns/outcomes.txt"
PATTERNS = dict(line.split(": ", 1) for line in OUTCOMES.read_text().splitlines())
"""Who speaks in each pattern, and why it ends, as its page says."""


def test_network_pipeline(tmp_path: Path) -> None:
    """The topic is the researcher's turn, the two others think, and the sequence completes."""
    pytest.importorskip("ag2")
    printed = _run("network_pipeline.py", tmp_path).splitlines()
    assert printed == [
        "researcher: Topic: how do tides work?",
        "writer: The moon pulls the sea.",
        "editor: Moon pulls sea.",
        "closed: sequence_complete",
    ]


def test_network_human_seeder(tmp_path: Path) -> None:
    """The drafter is asked about the person's brief."""
    pytest.importorskip("ag2")
    printed = _run("network_human_seeder.py", tmp_path).splitlines()
    assert printed[-1] == "closed: reviewed"
    assert printed[0].startswith("drafter: ")


def test_network_triage(tmp_path: Path) -> None:
    """Triage hands off to security, and nobody asks the generalist."""
    pytest.importorskip("ag2")
    printed = _run("network_triage.py", tmp_path)
    assert "security: Account locked." in printed
    assert "general:" not in printed


def test_network_feedback_loop(tmp_path: Path) -> None:
    """Two revisions, then the approval ends the channel."""
    printed = _run("network_feedback_loop.py", tmp_path)
    assert printed.count("reviewer: Too long.") == 2
    assert printed.endswith("closed: approved\n")


def test_network_context_routing(tmp_path: Path) -> None:
    """Each category reaches its specialist."""
    pytest.importorskip("ag2")
    printed = _run("network_context_routing.py", tmp_path).splitlines()
    assert printed == ["billing: billing here", "shipping: shipping here"]


@pytest.fixture(scope="module")
def printed_patterns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each pattern printed."""
    lines = _run("network_patterns.py", tmp_path_factory.mktemp("patterns")).splitlines()
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize("name", PATTERNS)
def test_network_patterns(name: str, printed_patterns: dict[str, str]) -> None:
    """Each pattern takes the turns that its graph says, and ends with its reason."""
    assert printed_patterns[name] == PATTERNS[name]


def test_network_mixed(tmp_path: Path) -> None:
    """Four kinds of participants hand off; the charge waits for a person and is made once."""
    pytest.importorskip("ag2")
    pytest.importorskip("agno")
    printed = _run("network_mixed.py", tmp_path)
    assert "waiting for approval: charge" in printed
    assert "stock: three lamps are there" in printed
    assert printed.endswith("user: Mail is on its way.\nclosed: delivered\n")


def test_network_watching(tmp_path: Path) -> None:
    """The turn and the end of the channel are seen, in order."""
    printed = _run("network_watching.py", tmp_path).split("\n")
    assert [line.strip() for line in printed if line] == [
        "turn_started",
        "turn_done",
        "channel_closed enough",
    ]
