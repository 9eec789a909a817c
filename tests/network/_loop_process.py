"""One process of the loop, to be killed: `python -m tests.network._loop_process DB EFFECTS N`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from agent_adapter.store import open_store
from tests.network._loop import Loop, live


def main() -> None:
    """Go on with the loop of that store until it ends."""
    path, effects, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    def write(line: str) -> None:
        with effects.open("a") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    async def run() -> None:
        store = open_store(path)
        loop = Loop(write, lambda: effects.read_text().splitlines(), rounds)
        await live(store, loop, ready=lambda: print("ready", flush=True))
        await store.aclose()

    asyncio.run(run())


if __name__ == "__main__":
    main()
