"""P1: what the whole pipeline adds to a bare call."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from agent_adapter import Executor, ToolContext, ToolRegistry, open_store
from agent_adapter.core.tool import ToolSpec
from benchmarks.measure import in_turns
from benchmarks.row import Row

__all__ = ["run"]

SHORT_BATCHES = 4
"""A batch shorter than a time slice of the machine's scheduler is seldom interrupted."""

ARGUMENTS: dict[str, Any] = {"a": 1, "b": 2}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    a: int
    b: int


async def _bare(calls: int) -> float:
    validate = _Arguments.__pydantic_validator__.validate_json
    began = time.perf_counter()
    for _ in range(calls):
        await add(**validate(to_json(ARGUMENTS), strict=True).__dict__)
    return time.perf_counter() - began


async def run(folder: Path, rounds: int) -> list[Row]:
    """The row of the goal; with a context, as integrations give one; and with recording counted.

    A read is recorded in the background, after its caller has its value.
    """
    registry = ToolRegistry()
    spec = registry.add(ToolSpec.from_function(add, effects="read"))
    store = open_store("memory://")
    executor = Executor(registry, store=store)

    async def pipeline(calls: int) -> float:
        run_spec = executor.run_spec
        began = time.perf_counter()
        for _ in range(calls):
            await run_spec(spec, ARGUMENTS)
        return time.perf_counter() - began

    async def with_context(calls: int) -> float:
        run_spec = executor.run_spec
        contexts = [ToolContext(f"call_{n}", "run_bench") for n in range(calls)]
        began = time.perf_counter()
        for ctx in contexts:
            await run_spec(spec, ARGUMENTS, ctx, call_id=ctx.call_id)
        return time.perf_counter() - began

    async def recorded(calls: int) -> float:
        await store.flush()
        began = time.perf_counter()
        for _ in range(calls):
            await executor.run_spec(spec, ARGUMENTS)
        await store.flush()
        return time.perf_counter() - began

    contenders = {
        "bare call": _bare,
        "run_spec": pipeline,
        "run_spec, context": with_context,
        "run_spec, recorded": recorded,
    }
    bare, ours, bound, kept = await in_turns(contenders, rounds=rounds * SHORT_BATCHES, calls=100)
    await store.aclose()
    return [
        Row(id="P1", what="run_spec, read tool, no policy", ours=ours, against=bare, limit=4),
        Row(id="P1", what="the same with a ToolContext given", ours=bound, against=bare),
        Row(id="P1", what="the same until its record is written", ours=kept, against=bare),
    ]
