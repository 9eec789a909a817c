"""Processes that tests start, race and kill: `python -m tests.exec.workers NAME ARGUMENTS`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent_adapter as aa
from agent_adapter.network.turns import turn_queue
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.witness import keys_of_channel

registry = aa.ToolRegistry()
_effects = -1


@registry.tool
def pay(number: int) -> str:
    """Pay one invoice: its number is appended to the file of effects, in one write."""
    os.write(_effects, f"{number}\n".encode())
    os.write(sys.stdout.fileno(), b".")
    return f"paid {number}"


@registry.tool(confirm=True)
def refund(number: int) -> str:
    """Refund one order: its number is appended to the file of effects, in one write."""
    os.write(_effects, f"{number}\n".encode())
    return f"refunded {number}"


@registry.tool(once_key=lambda arguments: str(arguments["number"]))
def ship(number: int) -> str:
    """Ship an order, whoever asks for it."""
    os.write(_effects, f"{number}\n".encode())
    return f"{number} is shipped"


@registry.tool
def spend(number: int, by: str) -> str:
    """Spend from what the run may spend."""
    os.write(_effects, f"{number}\n".encode())
    return f"{by} spent {number}"


def main(name: str, database: str, effects: str, *rest: str) -> None:
    """Run the worker of that name until it ends or is killed."""
    global _effects
    _effects = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    store = aa.open_store(database if "://" in database else f"sqlite:///{Path(database)}")
    asyncio.run(WORKERS[name](store, *rest))


async def pay_all(store: aa.Store, attempt: str, count: str) -> None:
    """Issue `count` payments of one run, 16 at a time; a call in doubt is left to a person."""
    executor = aa.Executor(registry, store=store)
    numbers = iter(range(int(count)))

    async def some() -> None:
        for number in numbers:
            ctx = aa.ToolContext(run_id="run_pay", attempt=int(attempt))
            try:
                await executor.run("pay", {"number": number}, ctx=ctx)
            except aa.ToolInDoubt:
                continue

    os.write(sys.stdout.fileno(), b"r")
    await asyncio.gather(*(some() for _ in range(16)))
    await store.aclose()
    os.write(sys.stdout.fileno(), b"e")


async def race(store: aa.Store) -> None:
    """For each `id number` on standard input run that approved call; say how it went."""
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        record_id, number, how = line.split()
        try:
            if how == "resume":
                await executor.resume(record_id)
            else:
                ctx = aa.ToolContext(run_id=f"run_{number}")
                await executor.run("refund", {"number": int(number)}, ctx=ctx)
        except aa.AgentAdapterError as exc:
            print(exc.kind, flush=True)
        else:
            print("ok", flush=True)
    await store.aclose()


async def contend(store: aa.Store, by: str) -> None:
    """For each `what number` on standard input do it, as another process does; say how it went."""
    executor = aa.Executor(registry, store=store, limits=aa.RunLimits(max_calls=1))
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        what, number = line.split()
        if what == "turn":
            started = await store.write(StartTurn(f"turn_{number}", "chn_race"))
            print("lost" if started is None else "ok", flush=True)
            continue
        run = f"run_{number}" if what == "spend" else f"run_{number}_{by}"
        try:
            given = {"number": int(number)} | ({"by": by} if what == "spend" else {})
            await executor.run(what, given, ctx=aa.ToolContext(run_id=run))
        except aa.AgentAdapterError as exc:
            print(exc.kind, flush=True)
        else:
            print("ok", flush=True)
    await store.aclose()


@dataclass(frozen=True)
class StartTurn:
    """Start a due turn, under the lock of its channel."""

    turn_id: str
    channel_id: str

    def __call__(self, tx: Transaction) -> Row | None:
        """The turn, or `None` where another process has it."""
        return turn_queue.start(tx, self.turn_id)

    def keys(self) -> frozenset[str]:
        """Its channel."""
        return keys_of_channel(self.channel_id)


WORKERS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "pay_all": pay_all,
    "race": race,
    "contend": contend,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
