"""P2: an exported tool against the framework's own tool of the same function."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_adapter import Executor, ToolRegistry, open_store
from agent_adapter.core.tool import ToolSpec
from benchmarks.measure import Batch, Sample, in_turns
from benchmarks.row import Row, Skipped

__all__ = ["run"]

SHORT_BATCHES = 4
"""A batch shorter than a time slice of the machine's scheduler is seldom interrupted."""

SLOW_ENOUGH = 10e-6
"""Native paths faster than this are outside the mean: a ratio says little about them."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def run(folder: Path, rounds: int) -> list[Row | Skipped]:
    """One row per framework that is installed, and their geometric mean."""
    rows: list[Row | Skipped] = []
    for name, prepare in FRAMEWORKS.items():
        store = open_store("memory://")
        registry = ToolRegistry()
        spec = registry.add(ToolSpec.from_function(add, effects="read"))
        try:
            native, exported = await prepare(spec, Executor(registry, store=store))
        except ImportError as missing:
            rows.append(Skipped(id="P2", what=name, reason=f"not installed: {missing}"))
            continue
        contenders = {f"{name}, native tool": native, f"{name}, exported": exported}
        theirs, ours = await in_turns(contenders, rounds=rounds * SHORT_BATCHES, calls=50)
        await store.aclose()
        rows.append(Row(id="P2", what=name, ours=ours, against=theirs, limit=1.3))
    measured = [row for row in rows if isinstance(row, Row) and row.against.median >= SLOW_ENOUGH]
    return [*rows, _mean(measured)] if measured else rows


def _mean(rows: list[Row]) -> Row:
    mean = statistics.geometric_mean(row.ratio for row in rows)
    return Row(
        id="P2",
        what="geometric mean",
        ours=Sample(name="exported", seconds=(mean,)),
        against=Sample(name="native", seconds=(1.0,)),
        limit=1.0,
        note="ratio",
    )


async def _ag2(spec: ToolSpec, executor: Executor) -> tuple[Batch, Batch]:
    from ag2 import Context, tool
    from ag2.events import ToolCallEvent
    from ag2.stream import MemoryStream
    from ag2.tools.types import FunctionTool

    from agent_adapter.integrations.ag2 import ag2_tool

    def batch_of(function_tool: FunctionTool) -> Batch:
        async def batch(calls: int) -> float:
            context = Context(MemoryStream())
            events = [
                ToolCallEvent(id=f"call_{n}", name="add", arguments='{"a": 1, "b": 2}')
                for n in range(calls)
            ]
            began = time.perf_counter()
            for event in events:
                await function_tool(event, context)
            return time.perf_counter() - began

        return batch

    return batch_of(tool(add)), batch_of(ag2_tool(spec, executor=executor))


async def _agno(spec: ToolSpec, executor: Executor) -> tuple[Batch, Batch]:
    from agno.tools.function import Function, FunctionCall

    from agent_adapter.integrations.agno import agno_function

    def batch_of(function: Function) -> Batch:
        async def batch(calls: int) -> float:
            made = [
                FunctionCall(function=function, arguments={"a": 1, "b": 2}, call_id=f"call_{n}")
                for n in range(calls)
            ]
            began = time.perf_counter()
            for call in made:
                await call.aexecute()
            return time.perf_counter() - began

        return batch

    native = Function.from_callable(add)
    native.process_entrypoint()
    return batch_of(native), batch_of(agno_function(spec, executor=executor))


FRAMEWORKS: dict[str, Callable[[ToolSpec, Executor], Awaitable[tuple[Batch, Batch]]]] = {
    "ag2": _ag2,
    "agno": _agno,
}
