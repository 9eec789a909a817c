"""`agent-adapter demo`."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from .conftest import Run

pytest.importorskip("ag2")
pytest.importorskip("agno")


def test_demo_tells_the_whole_story(run: Run) -> None:
    """Both agents, both held calls, both decisions, and the ledger that verifies."""
    ran = run("demo")
    assert ran.code == 0, ran
    for part in ("AG2", "Agno", "approval required: apr_", "approvals approve apr_", "The ledger"):
        assert part in ran.out
    assert "money moved: 40.00 EUR for A1, 19.00 EUR for B2" in ran.out


def test_demo_runs_each_refund_once_and_keeps_its_store(run: Run, tmp_path: Path) -> None:
    """Held calls run once in either framework; `--keep` leaves a store to look at."""
    folder = tmp_path / "kept"
    told = run("demo", "--keep", str(folder), "--json").json
    assert told["verified"] is True
    assert told["paid_back"] == [["A1", 40.0], ["B2", 19.0]]
    assert [agent["framework"] for agent in told["agents"]] == ["AG2", "Agno"]
    assert {agent["approval"]["state"] for agent in told["agents"]} == {"taken"}
    assert run("ledger", "verify", "--store", f"sqlite:///{folder}/state.db").code == 0


def test_demo_offers_the_console(run: Run, tmp_path: Path) -> None:
    """It ends with commands that can be typed as they stand, over the store that was filled."""
    ran = run("demo", "--keep", "kept")
    typed = [shlex.split(line)[2:] for line in ran.out.splitlines()[-2:]]
    assert [words[0] for words in typed] == ["tokens", "serve"]
    assert f"sqlite:///{tmp_path}/kept/state.db" in typed[1]
    assert run(*typed[0]).code == 0
    assert run(*typed[1], "--help").code == 0


def test_demo_prints_json_or_serves(run: Run) -> None:
    """What is to be read by a program ends."""
    ran = run("demo", "--serve", "--json")
    assert (ran.code, "--serve" in ran.err) == (2, True)


@pytest.mark.slow
def test_demo_serves_what_happened(run: Run) -> None:
    """`--serve` goes on with the console and a token that opens it."""
    pytest.importorskip("starlette")
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_adapter.cli", "demo", "--serve"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        while not lines or not lines[-1].startswith("console on "):
            lines.append(process.stdout.readline())
            assert lines[-1], "it ended early"
        token = next(line.strip() for line in lines if line.startswith("aat_"))
        asked = Request(f"{lines[-1].split()[-1]}api/v1/runs")
        asked.add_header("Authorization", f"Bearer {token}")
        with urlopen(asked, timeout=120) as answer:
            found = {each["run_id"] for each in json.load(answer)["runs"]}
        assert len(found - {"upkeep"}) == 3  # each ask of AG2's stream is a run
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
