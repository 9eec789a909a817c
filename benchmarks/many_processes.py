"""Durable calls per second of several processes on one store.

    python -m benchmarks.many_processes state.db postgresql://agents@db/agents

For each store: processes that each keep calls in flight for some seconds, then one call after the
other in one process. For PostgreSQL the latter is compared with two bare transactions of psycopg.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from agent_adapter import Executor, Store, ToolContext, ToolRegistry, open_store

CALLS_PER_RUN = 10
ALONE = 200


def main() -> None:
    """Measure every store that is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stores", nargs="+")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--worker", default="")
    given = parser.parse_args()
    if given.worker:
        print(asyncio.run(_work(given.stores[0], given.worker, given.in_flight, given.seconds)))
        return
    for url in given.stores:
        many = _many(url, given.processes, given.in_flight, given.seconds)
        print(f"{url.split('@')[-1].split('?')[0]}: {given.processes} processes,", end=" ")
        print(f"{given.in_flight} in flight each: {many:,.0f} durable calls/s", flush=True)
        alone = asyncio.run(_alone(url))
        print(f"  alone: p50 {alone * 1e3:.2f} ms", flush=True)
        if "://" in url and not url.startswith("sqlite"):
            bare = _bare(url)
            print(f"  two bare transactions: p50 {bare * 1e3:.2f} ms, {alone / bare:.1f} times")


def _many(url: str, processes: int, in_flight: int, seconds: float) -> float:
    asyncio.run(open_store(url).aclose())
    command = [sys.executable, "-m", "benchmarks.many_processes", url]
    command += ["--in-flight", str(in_flight), "--seconds", str(seconds)]
    workers = [
        subprocess.Popen([*command, "--worker", f"w{n}"], stdout=subprocess.PIPE, text=True)
        for n in range(processes)
    ]
    done = [worker.communicate()[0] for worker in workers]
    return sum(map(float, done))


def _call(store: Store, name: str) -> Callable[[int], Awaitable[object]]:
    registry = ToolRegistry()

    @registry.tool(effects="write")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    executor, spec = Executor(store=store), registry.get("add")

    async def call(number: int) -> object:
        ctx = ToolContext(f"call_{number}", f"{name}_{number // CALLS_PER_RUN}")
        return await executor.run_spec(spec, {"a": number, "b": 2}, ctx, call_id=ctx.call_id)

    return call


async def _work(url: str, name: str, in_flight: int, seconds: float) -> float:
    store = open_store(url)
    call = _call(store, f"{name}_{time.time_ns()}")
    numbers = iter(range(10_000_000))

    async def some(until: float) -> int:
        done = 0
        while time.monotonic() < until:
            await call(next(numbers))
            done += 1
        return done

    await asyncio.gather(*(some(time.monotonic() + 0.5) for _ in range(in_flight)))
    began = time.monotonic()
    done = await asyncio.gather(*(some(began + seconds) for _ in range(in_flight)))
    rate = sum(done) / (time.monotonic() - began)
    await store.aclose()
    return rate


async def _alone(url: str) -> float:
    store = open_store(url)
    call = _call(store, f"alone_{time.time_ns()}")
    took = []
    for number in range(ALONE):
        began = time.perf_counter()
        await call(number)
        took.append(time.perf_counter() - began)
    await store.aclose()
    return statistics.median(took)


def _bare(url: str) -> float:
    import psycopg

    took = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare_commits (id bigserial, data text)")
        for _ in range(ALONE):
            began = time.perf_counter()
            for _ in range(2):
                with connection.transaction():
                    connection.execute("INSERT INTO bare_commits (data) VALUES (%s)", ["x" * 200])
            took.append(time.perf_counter() - began)
        connection.execute("DROP TABLE bare_commits")
    return statistics.median(took)


if __name__ == "__main__":
    main()
