"""Shorthand: one call of a decorated function through the executor at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.tool import ToolSpec, spec_of
from agent_adapter.exec.call import Call
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.scope import current_scope


async def acall(tool: Callable[..., Any] | ToolSpec, /, **arguments: Any) -> Any:
    """Run one call of `tool`, a decorated function or a `ToolSpec`.

    Inside a tool it runs in that tool's executor, elsewhere in the default executor.
    """
    around = current_scope.get()
    # Another executor would keep the call in another store: a crash would repeat it.
    runner = around.runtime.runner if isinstance(around, Call) else None
    return await runner_for(runner).run_spec(spec_of(tool), arguments, ToolContext())


def call(tool: Callable[..., Any] | ToolSpec, /, **arguments: Any) -> Any:
    """`acall` for code without an event loop; refused where one runs."""
    return _run(acall(tool, **arguments))


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    coroutine.close()
    raise AgentAdapterError("call() cannot run inside an event loop: use `await acall(…)` there")
