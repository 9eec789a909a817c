"""Loads AgentDojo's suites."""

from __future__ import annotations

from typing import Any

__all__ = ["VERSION", "load_suites"]

VERSION = "v1.2.2"
"""The version of AgentDojo's tasks."""


def load_suites() -> dict[str, Any]:
    """The suites by name; `SystemExit` with the command when `agentdojo` is not installed."""
    try:
        from agentdojo.task_suite.load_suites import get_suites
    except ModuleNotFoundError as missing:
        raise SystemExit(
            f"the AgentDojo workload needs the package {missing.name!r}: uv sync --group agentdojo"
        ) from None
    return dict(get_suites(VERSION))
