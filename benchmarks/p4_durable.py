"""P4: a durable write call on SQLite, alone and with 64 in flight."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_adapter import Executor, ToolContext, ToolRegistry, open_store
from benchmarks.measure import Batch, Sample, in_turns
from benchmarks.raw_commits import RawCommits
from benchmarks.row import Row, Skipped

__all__ = ["run"]

IN_FLIGHT = 64
CALLS_PER_RUN = 10

OneCall = Callable[[int], Awaitable[object]]

CTRLRUN_POLICY = """
schema: ctrlrun.policy/v2

actions:
  bench.add:
    effect: "add:{key}"
    rules:
      - when: { a_gte: 0 }
        decision: allow
"""


async def run(folder: Path, rounds: int) -> list[Row | Skipped]:
    """Time alone and calls per second together, against ctrlrun and against raw commits."""
    rounds = max(5, rounds // 4)
    store = open_store(f"sqlite:///{folder / 'ours.db'}")
    raw = RawCommits(folder / "raw.db")
    ours_call, raw_call = _ours(Executor(store=store)), _raw(raw)
    alone = {"raw commits": _alone(raw_call), "run_spec": _alone(ours_call)}
    together = {"raw commits": _together(raw_call), "run_spec": _together(ours_call)}
    skipped: list[Row | Skipped] = []
    with contextlib.ExitStack() as stack:
        try:
            alone["ctrlrun"], together["ctrlrun"] = _ctrlrun(folder, stack)
        except ImportError:
            reason = "not installed: pip install ctrlrun==0.12.2"
            skipped = [Skipped(id="P4", what="against ctrlrun", reason=reason)]
        single = {s.name: s for s in await in_turns(alone, rounds=rounds, calls=100)}
        many = {s.name: s for s in await in_turns(together, rounds=rounds, calls=1280)}
    await store.aclose()
    raw.close()
    rows: list[Row | Skipped] = [
        Row(
            id="P4",
            what="durable write alone, against raw commits",
            ours=single["run_spec"],
            against=single["raw commits"],
        ),
        Row(
            id="P4",
            what=f"durable writes, {IN_FLIGHT} in flight, against raw commits",
            ours=many["run_spec"],
            against=many["raw commits"],
            floor=0.4,
            per_second=True,
        ),
    ]
    if "ctrlrun" in single:
        rows += _against_ctrlrun(single, many)
    return [*rows, *skipped]


def _against_ctrlrun(single: dict[str, Sample], many: dict[str, Sample]) -> list[Row]:
    note = "ctrlrun commits with synchronous=NORMAL (no fsync), run_spec with FULL"
    return [
        Row(
            id="P4",
            what="durable write alone, against ctrlrun",
            ours=single["run_spec"],
            against=single["ctrlrun"],
            limit=1,
            note=note,
        ),
        Row(
            id="P4",
            what=f"durable writes, {IN_FLIGHT} in flight, against ctrlrun",
            ours=many["run_spec"],
            against=many["ctrlrun"],
            floor=10,
            per_second=True,
            note=note,
        ),
    ]


def _ours(executor: Executor) -> OneCall:
    registry = ToolRegistry()

    @registry.tool(effects="write")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    spec = registry.get("add")

    async def call(number: int) -> object:
        ctx = ToolContext(f"call_{number}", f"run_{number // CALLS_PER_RUN}")
        return await executor.run_spec(spec, {"a": number, "b": 2}, ctx, call_id=ctx.call_id)

    return call


def _raw(raw: RawCommits) -> OneCall:
    def call(number: int) -> Awaitable[object]:
        run, place = divmod(number, CALLS_PER_RUN)
        return raw.call(f"call_{number}", f"run_{run}", place * 2)

    return call


def _alone(call: OneCall) -> Batch:
    numbers = itertools.count(1_000_000)

    async def batch(calls: int) -> float:
        began = time.perf_counter()
        for _ in range(calls):
            await call(next(numbers))
        return time.perf_counter() - began

    return batch


def _together(call: OneCall) -> Batch:
    numbers = itertools.count(100_000_000, 1_000_000)

    async def worker(start: int, calls: int) -> None:
        for number in range(start, start + calls):
            await call(number)

    async def batch(calls: int) -> float:
        starts = [next(numbers) for _ in range(IN_FLIGHT)]
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for start in starts:
                group.create_task(worker(start, calls // IN_FLIGHT))
        return time.perf_counter() - began

    return batch


def _ctrlrun(folder: Path, stack: contextlib.ExitStack) -> tuple[Batch, Batch]:
    """Ctrlrun reads its policy from the working directory and its calls block, hence threads."""
    ctrlrun: Any = import_module("ctrlrun")

    (folder / "ctrlrun.yaml").write_text(CTRLRUN_POLICY, encoding="utf-8")
    os.environ["CTRLRUN_STATE"] = str(folder / "ctrlrun.db")
    stack.enter_context(contextlib.chdir(folder))
    threads = stack.enter_context(ThreadPoolExecutor(IN_FLIGHT))
    keys = itertools.count()

    def add(a: int, b: int, key: str) -> int:
        return a + b

    protected = ctrlrun.protect("bench.add", effect="add:{key}")(add)

    def call(number: int) -> int:
        with ctrlrun.context(agent="bench"):
            return int(protected(a=number, b=2, key=f"k{next(keys)}"))

    async def alone(calls: int) -> float:
        began = time.perf_counter()
        for number in range(calls):
            call(number)
        return time.perf_counter() - began

    async def together(calls: int) -> float:
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(threads, call, n) for n in range(calls)))
        return time.perf_counter() - began

    return alone, together
