"""How far an operation travels through the package: bounded, so that a reader can follow it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHANGES = {
    "bare read": 20,
    "durable write": 74,
    "confirmed write": 134,
    "envelope to reply": 281,
}
"""The most changes of file on each path."""


@pytest.fixture(scope="module")
def traces() -> dict[str, dict[str, int]]:
    """The four paths, traced in a process of their own."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("trace_program.py"))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("path", CHANGES)
def test_a_path_through_the_package_stays_short(
    path: str, traces: dict[str, dict[str, int]]
) -> None:
    """Each traced operation changes file at most as often as its bound."""
    print(f"{path}: {traces[path]}")
    assert traces[path]["changes"] <= CHANGES[path]
