"""P7: one write repeated with the same arguments in one run: what came before costs nothing."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from agent_adapter import Executor, ToolContext, ToolRegistry, ToolSpec, open_store
from agent_adapter.store.base import Store
from benchmarks.measure import Batch, in_turns
from benchmarks.row import Row

__all__ = ["run"]

FEW, MANY = 400, 4_000


async def run(folder: Path, rounds: int) -> list[Row]:
    """The call after 4,000 equal ones against the call after 400, in memory and on SQLite."""
    rows = []
    for kind in ("memory", "SQLite"):
        batches: dict[str, Batch] = {}
        stores: list[Store] = []
        for before in (FEW, MANY):
            url = "memory://" if kind == "memory" else f"sqlite:///{folder / f'{before}.db'}"
            store = open_store(url)
            stores.append(store)
            batches[f"after {before:,}"] = await _after(before, store)
        found = {s.name: s for s in await in_turns(batches, rounds=max(5, rounds // 4), calls=50)}
        for store in stores:
            await store.aclose()
        rows.append(
            Row(
                id="P7",
                what=f"write after {MANY:,} equal ones, against after {FEW:,}, {kind}",
                ours=found[f"after {MANY:,}"],
                against=found[f"after {FEW:,}"],
                limit=1.3,
            )
        )
    return rows


async def _after(before: int, store: Store) -> Batch:
    executor, spec = Executor(store=store), _spec()

    async def call(number: int) -> None:
        context = ToolContext(f"call_{number}", "run", "thread", principal="ann")
        await executor.run_spec(spec, {"to": "bob"}, context)

    for start in range(0, before, 200):
        await asyncio.gather(*(call(number) for number in range(start, start + 200)))

    async def batch(calls: int) -> float:
        began = time.perf_counter()
        for number in range(calls):
            await call(number)
        return time.perf_counter() - began

    return batch


def _spec() -> ToolSpec:
    registry = ToolRegistry()

    @registry.tool(effects="write")
    async def pay(to: str) -> str:
        """Pay somebody."""
        return to

    return registry.get("pay")
