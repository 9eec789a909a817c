"""One process of the loop, to be killed: `python -m tests.network._loop_process DB EFFECTS N`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TypeVar

from agent_adapter.core.errors import StoreError
from agent_adapter.store import open_store
from agent_adapter.store.base import Operation
from tests.fakes.store import FaultyStore
from tests.network._loop import Loop, live

T = TypeVar("T")


def loop_of(effects: Path, rounds: int) -> Loop:
    """The loop whose effects are lines of a file, each on the disk when it is written."""

    def write(line: str) -> None:
        with effects.open("a") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    return Loop(write, lambda: effects.read_text().splitlines(), rounds)


class KillingStore(FaultyStore):
    """Ends its own process, by SIGKILL, in place of the fault."""

    def _is_due(self) -> bool:
        due = super()._is_due()
        if due and not self._applied:
            os.kill(os.getpid(), signal.SIGKILL)
        return due

    async def write(self, op: Operation[T]) -> T:
        """Run `op`; the process dies before it, or when it is durable."""
        try:
            return await super().write(op)
        except StoreError:
            os.kill(os.getpid(), signal.SIGKILL)
            raise


def killed_at(path: str, effects: str, fail_at: int, applied: bool) -> None:
    """Live until the nth write or post, and die there."""

    async def run() -> None:
        inner = open_store(path)
        store = KillingStore(inner, fail_at=fail_at, applied=applied)
        await live(store, loop_of(Path(effects), 3))
        await inner.aclose()

    asyncio.run(run())


def main() -> None:
    """Go on with the loop of that store until it ends."""
    path, effects, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    async def run() -> None:
        store = open_store(path)
        await live(store, loop_of(effects, rounds), ready=lambda: print("ready", flush=True))
        await store.aclose()

    asyncio.run(run())


if __name__ == "__main__":
    main()
