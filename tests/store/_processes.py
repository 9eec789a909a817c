"""Programs that the tests start in processes of their own; `main` names one and its arguments."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from agent_adapter.store.base import Transaction
from agent_adapter.store.sqlite import SqliteStore


def start_when_told(folder: Path) -> None:
    """Say that this process is ready and wait for the others; one that is forgotten ends."""
    (folder / f"ready-{os.getpid()}").touch()
    deadline = time.monotonic() + 240
    while not (folder / "go").exists():
        if time.monotonic() > deadline:
            raise SystemExit("nobody said go")
        time.sleep(0.005)


async def hammer(path: Path, name: str, seconds: float) -> None:
    """Write one row after another; print how many, and the longest wait."""
    store = SqliteStore(path)
    start_when_told(path.parent)
    ends = time.monotonic() + seconds
    number, longest = 0, 0.0
    while time.monotonic() < ends:

        def add(tx: Transaction, number: int = number) -> None:
            tx.insert("runs", {"run_id": f"{name}-{number}", "started_at": tx.now})
            row = tx.get("usage", "all", "")
            if row is None:
                tx.insert("usage", {"run_id": "all", "tool": "", "calls": 1})
            else:
                tx.update("usage", {"run_id": "all"}, {"calls": row["calls"] + 1})

        began = time.monotonic()
        await store.write(add)
        longest = max(longest, time.monotonic() - began)
        number += 1
    await store.aclose()
    print(number, longest)


async def open_at_once(path: Path) -> None:
    """Open a store that another process opens at the same time; print its key."""
    start_when_told(path.parent)
    store = SqliteStore(path)
    await store.write(lambda tx: tx.insert("runs", {"run_id": store.owner_id}))
    print(store.key.hex())
    await store.aclose()


async def hold(path: Path) -> None:
    """Write, print the owner id, and stay until killed."""
    store = SqliteStore(path)
    await store.write(lambda tx: tx.insert("calls", {"call_key": "k", "owner_id": tx.owner_id}))
    print(store.owner_id, flush=True)
    await asyncio.Event().wait()


async def count_up(path: Path) -> None:
    """Write numbered rows and print each number once it is durable, until killed."""
    store = SqliteStore(path)
    for number in range(1_000_000):
        await store.write(
            lambda tx, number=number: tx.insert("ledger", {"run_id": "r", "seq": number})
        )
        print(number, flush=True)


async def post_and_leave(path: Path) -> None:
    """Post, and end without closing."""
    store = SqliteStore(path)
    for number in range(100):
        store.post(lambda tx, number=number: tx.insert("runs", {"run_id": f"r{number}"}))


def fork_and_write(path: Path) -> None:
    """Write in a parent and in its forked child; print both owner ids and what was seen of whom."""

    async def in_child(store: SqliteStore, parent: str) -> None:
        lives = await store.write(
            lambda tx: (tx.insert("runs", {"run_id": "child"}), tx.is_live(parent))
        )
        await store.aclose()
        print(parent != store.owner_id, lives[1], flush=True)

    store = SqliteStore(path)
    asyncio.run(store.write(lambda tx: tx.insert("runs", {"run_id": "parent"})))
    assert asyncio.run(store.read(lambda tx: tx.count("runs"))) == 1
    parent = store.owner_id
    child = os.fork()
    if child == 0:
        asyncio.run(in_child(store, parent))
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(store.write(lambda tx: tx.insert("runs", {"run_id": "after"})))
    runs = asyncio.run(store.read(lambda tx: tx.count("runs")))
    print(runs, store.owner_id == parent, flush=True)
    asyncio.run(store.aclose())


def fork_and_outlive(path: Path) -> None:
    """Print the owner id, fork a child that stays, and be killed."""
    store = SqliteStore(path)
    asyncio.run(store.write(lambda tx: tx.insert("runs", {"run_id": "parent"})))
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    print(store.owner_id, child, flush=True)
    time.sleep(60)


def main(name: str, path: str, *arguments: str) -> None:
    """Run one of the programs above."""
    where = Path(path)
    if name == "hammer":
        asyncio.run(hammer(where, arguments[0], float(arguments[1])))
    elif name == "fork_and_write":
        fork_and_write(where)
    elif name == "fork_and_outlive":
        fork_and_outlive(where)
    else:
        programs = {p.__name__: p for p in (open_at_once, hold, count_up, post_and_leave)}
        asyncio.run(programs[name](where))


if __name__ == "__main__":
    main(*sys.argv[1:])
