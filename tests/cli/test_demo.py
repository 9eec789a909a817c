"""`agent-adapter demo`."""

from __future__ import annotations

from pathlib import Path

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
