"""`agent-adapter integrations`."""

from __future__ import annotations

import sys

import pytest

from agent_adapter.integrations import discovery

from .conftest import Run


def test_integrations_name_version_and_range(run: Run) -> None:
    """Every integration says what is installed and what is supported."""
    rows = {row["name"]: row for row in run("integrations", "--json").json}
    assert set(rows) >= {"ag2", "agno"}
    assert rows["ag2"]["supported"].startswith("ag2")
    assert run("integrations").code == 0


def test_a_missing_framework_comes_with_its_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not installed says how to install it, and is not an error."""
    monkeypatch.setitem(sys.modules, "agno", None)
    monkeypatch.setattr(discovery, "_cache", None)
    rows = {row["name"]: row for row in run("integrations", "--json").json}
    assert rows["agno"]["state"] == "not installed"
    assert 'pip install "agent-adapter[agno]"' in rows["agno"]["note"]
