"""The benchmark command runs, reports and writes its results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["P1", "P2", "P4", "P5", "P6", "P7"])
def test_benchmark_reports_both_sides(name: str, tmp_path: Path) -> None:
    """A benchmark writes its medians and its ratio as JSON, whatever the verdict."""
    output = tmp_path / "results.json"
    done = _run("--only", name, "--rounds", "3", "--output", str(output))
    assert done.returncode == 0, done.stderr
    rows = [row for row in json.loads(output.read_text())["rows"] if row["verdict"] != "skipped"]
    assert rows
    assert all(row["id"] == name and row["ratio"] > 0 for row in rows)


def test_unknown_benchmark_is_refused_with_the_choices() -> None:
    """An unknown name ends with a usage error that lists what there is."""
    done = _run("--only", "P99")
    assert done.returncode == 2
    assert "P1" in done.stderr
