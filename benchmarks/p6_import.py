"""P6: how long `import agent_adapter` takes."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.measure import Batch, in_turns
from benchmarks.row import Row

__all__ = ["run"]


def _fresh(statement: str) -> Batch:
    async def batch(calls: int) -> float:
        began = time.perf_counter()
        for _ in range(calls):
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", statement)
            if await process.wait() != 0:
                raise RuntimeError(f"python -c {statement!r} failed")
        return time.perf_counter() - began

    return batch


async def run(folder: Path, rounds: int) -> list[Row]:
    """Fresh interpreters, started in turns; the executor's own import is information."""
    contenders = {
        "import pydantic": _fresh("import pydantic"),
        "pydantic.BaseModel": _fresh("import pydantic; pydantic.BaseModel"),
        "import agent_adapter": _fresh("import agent_adapter"),
        "and its Executor": _fresh("import agent_adapter; agent_adapter.Executor"),
    }
    bare, used, ours, executor = await in_turns(contenders, rounds=max(5, rounds // 4), calls=1)
    return [
        Row(id="P6", what="import agent_adapter", ours=ours, against=bare, limit=1.3),
        Row(id="P6", what="its Executor against pydantic.BaseModel", ours=executor, against=used),
    ]
