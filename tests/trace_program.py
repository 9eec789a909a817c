"""Prints the path of four warm operations through the package, as JSON; run as a program.

A path is the sequence of Python frames that are entered in the package's files, worker threads
included. `frames` counts them, `files` the distinct files, `changes` how often a frame lies in
another file than the frame before it in its thread. The shortest of several tries counts: a sweeper
or a second batch of the writer may fall into any of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import agent_adapter as aa
from agent_adapter.network import Hub, HubClient, LocalLink, Passport, Resume

PACKAGE = str(Path(aa.__file__).parent)
WARM = 5
TRIES = 20


class Tracer:
    """Records the files of the frames entered while it is on, by thread."""

    def __init__(self) -> None:
        self.on = False
        self.paths: dict[int, list[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a frame of the package."""
        if self.on and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            path = self.paths.setdefault(threading.get_ident(), [])
            path.append(frame.f_code.co_filename.removeprefix(PACKAGE))

    async def of(self, operation: Callable[[int], Awaitable[Any]]) -> dict[str, Any]:
        """The shortest path of an operation, after a few that warm it up."""
        for number in range(WARM):
            await operation(number)
        return min([await self._once(operation, n) for n in range(TRIES)], key=_changes)

    async def _once(self, operation: Callable[[int], Awaitable[Any]], number: int) -> Any:
        self.paths.clear()
        self.on = True
        await operation(WARM + number)
        self.on = False
        paths = [list(path) for path in self.paths.values()]
        return {
            "frames": sum(len(path) for path in paths),
            "files": len({file for path in paths for file in path}),
            "changes": sum(a != b for path in paths for a, b in pairwise(path)),
        }


def _changes(found: dict[str, Any]) -> int:
    return int(found["changes"])


registry = aa.ToolRegistry()


@registry.tool(effects="read")
def look(a: int, b: int) -> int:
    """Add."""
    return a + b


@registry.tool(effects="write")
async def put(a: int, b: int) -> int:
    """Add, as a write."""
    return a + b


@registry.tool(effects="write", confirm=True)
async def pay(a: int, b: int) -> int:
    """Add, once a person agreed."""
    return a + b


async def agree(request: aa.ApprovalRequest) -> bool:
    """Stand for a person who agrees."""
    return True


async def calls(tracer: Tracer, folder: str) -> dict[str, dict[str, Any]]:
    """The three calls of an executor."""

    def running(executor: aa.Executor, tool: str) -> Callable[[int], Awaitable[Any]]:
        return lambda number: executor.run(tool, {"a": number, "b": 2})

    bare = aa.Executor(registry, store=aa.open_store("memory://"))
    store = aa.open_store(f"sqlite:///{folder}/calls.db")
    durable = aa.Executor(registry, store=store, approval=aa.CallbackApproval(agree))
    found = {
        "bare read": await tracer.of(running(bare, "look")),
        "durable write": await tracer.of(running(durable, "put")),
        "confirmed write": await tracer.of(running(durable, "pay")),
    }
    await bare.aclose()
    await durable.aclose()
    return found


async def envelopes(tracer: Tracer, folder: str) -> dict[str, Any]:
    """An envelope that a participant sends, until the other's reply is in the log."""
    async with await Hub.open(
        f"sqlite:///{folder}/hub.db", ttl_sweep_interval=0, expectation_sweep_interval=0
    ) as hub:
        client = HubClient(LocalLink(hub), hub=hub)
        ann = await client.register_human(Passport(name="ann", kind="human"))
        await client.register(answer, Passport(name="echo"), Resume(), attach_plugin=False)
        echo = hub.name_to_id_map()["echo"]
        channel = await ann.open(type="conversation", target=[echo])

        async def one(number: int) -> None:
            await channel.send(f"text {number}")
            await hub.idle()

        found = await tracer.of(one)
        log = [str(e.event_data.get("text")) for e in await hub.read_wal(channel.channel_id)]
        if f"heard text {WARM}" not in log:
            raise SystemExit(f"no reply in {log}")
        await client.close()
        return found


async def answer(text: Any) -> str:
    """Answer the newest text."""
    return f"heard {text}"


async def main() -> None:
    """Trace everything."""
    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    with tempfile.TemporaryDirectory() as folder:
        found = await calls(tracer, folder)
        found["envelope to reply"] = await envelopes(tracer, folder)
    sys.setprofile(None)
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
