"""The default runner of integrations."""

from __future__ import annotations

from agent_adapter.core.ports import ToolRunner
from agent_adapter.exec.executor import Executor

_default: list[Executor] = []


def runner_for(executor: ToolRunner | None) -> ToolRunner:
    """The given runner, else the one default `Executor` of this process."""
    if executor is not None:
        return executor
    if not _default:
        _default.append(Executor())
    return _default[0]
