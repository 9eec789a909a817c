"""`make test` runs its groups one after another and prints what each took."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.house.modules import ROOT
from tests.sampling import SAMPLES, sample


def _run(folder: Path, *groups: str) -> subprocess.CompletedProcess[str]:
    make = folder / "make"
    make.write_text('#!/bin/sh\necho "ran $2"\ntest "$2" != broken\n')
    make.chmod(0o755)
    return subprocess.run(
        ["sh", str(ROOT / "tools" / "groups.sh"), *groups],
        env={**os.environ, "MAKE": str(make)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_group_runs_and_its_minutes_are_printed(tmp_path: Path) -> None:
    """The report has a line for each group, the total and the budget."""
    done = _run(tmp_path, "lint", "unit")
    assert done.returncode == 0
    report = done.stdout.split("minutes per group:")[1].splitlines()
    assert [line.split()[0] for line in report if line] == ["lint", "unit", "total", "budget"]


def test_a_group_that_fails_ends_the_run(tmp_path: Path) -> None:
    """Nothing runs after a failure; the report names the group and the exit code tells."""
    done = _run(tmp_path, "broken", "unit")
    assert done.returncode == 1
    assert "ran unit" not in done.stdout
    assert done.stderr == "failed: broken\n"


def test_a_sample_says_what_it_leaves_out() -> None:
    """What is printed at the end of a run has the suite, the number taken and the full number."""
    taken = sample("numbers", quick=3, full=1_000)
    assert str(SAMPLES.pop()) == f"{__name__}: {taken:,} of 1,000 numbers"
