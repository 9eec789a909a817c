"""Loads AgentDojo's suites."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__all__ = ["VERSION", "load_suites", "trace_call"]

VERSION = "v1.2.2"
"""The version of AgentDojo's tasks."""


def load_suites() -> dict[str, Any]:
    """The suites by name; `SystemExit` with the command when `agentdojo` is not installed."""
    try:
        loader = import_module("agentdojo.task_suite.load_suites")
    except ModuleNotFoundError as missing:
        raise SystemExit(
            f"the AgentDojo workload needs the package {missing.name!r}: uv sync --group agentdojo"
        ) from None
    return dict(loader.get_suites(VERSION))


def trace_call(function: str, arguments: Mapping[str, Any], id: str) -> Any:
    """A call as AgentDojo's checkers read it in a trace."""
    runtime = import_module("agentdojo.functions_runtime")
    return runtime.FunctionCall(function=function, args=dict(arguments), id=id)
