"""`python -m workloads.soak`: a mixed load for some minutes; fails on anything that grows.

Reads, writes, approvals and channels go through one store while retention prunes what is older than
a minute. Each window prints latencies, labels, descriptors and the size of the file. It fails where
the last window is worse than the first after the warm-up by more than its allowance, where the
ledger does not verify, or where pruned space is not given back.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import agent_adapter as aa
from agent_adapter.exec import ledger, retention, upkeep
from agent_adapter.network import Hub, HubClient, LocalLink, Passport, Resume
from agent_adapter.store import Retention
from agent_adapter.store.sqlite import SqliteStore

KEPT = timedelta(minutes=1)
PRUNE_SECONDS = 10.0
STEADY_SECONDS = 80.0
"""When as much is pruned as is written."""

LEAST_MINUTES = 2.0
PAUSE = {"read": 0.02, "write": 0.05, "approval": 0.2, "channel": 1.0}
"""Seconds between two operations of a kind."""

TURNS = 6
THREADS = 8
SLOWER = 2.0
SLACK_SECONDS = 0.02
MORE_DESCRIPTORS = 8
LARGER = 1.3
SLACK_BYTES = 3_000_000

registry = aa.ToolRegistry()


@registry.tool(effects="read", trust="untrusted")
async def fetch(page: int) -> str:
    """Fetch a page that somebody else wrote."""
    return f"page {page} " + "x" * 500


@registry.tool(effects="write")
async def note(number: int) -> str:
    """Write a note."""
    return f"note {number} " + "x" * 2000


@registry.tool(effects="write", confirm=True)
async def pay(number: int) -> str:
    """Pay, once a person agreed."""
    return f"paid {number}"


@dataclass(slots=True)
class Window:
    """What was measured in a part of the run."""

    latencies: dict[str, list[float]] = field(default_factory=lambda: {k: [] for k in PAUSE})
    labels: int = 0
    descriptors: int = 0
    size: int = 0
    memory: int = 0

    def p95(self, kind: str) -> float:
        """Seconds within which 95 of 100 operations of that kind were done."""
        found = sorted(self.latencies[kind])
        return found[int(len(found) * 0.95)] if found else 0.0


class Soak:
    """The store, the hub over it, and who uses them."""

    def __init__(self, store: SqliteStore, hub: Hub) -> None:
        self.store = store
        self.hub = hub
        self.window = Window()
        self.approving = aa.DeferredApproval(store)
        self.executor = aa.Executor(registry, store=store, approval=self.approving)
        self._numbers = itertools.count(1)
        self._people: list[Any] = []

    async def join(self) -> None:
        """Register a person and an agent that answers."""
        client = HubClient(LocalLink(self.hub), hub=self.hub)
        self._people.append(await client.register_human(Passport(name="ann", kind="human")))
        await client.register(_answer, Passport(name="echo"), Resume(), attach_plugin=False)

    async def read(self) -> None:
        """An untrusted read in one of a few conversations."""
        number = next(self._numbers)
        ctx = aa.ToolContext(run_id=f"run {number // 20}", thread_id=f"talk {number % THREADS}")
        await self.executor.run("fetch", {"page": number % 50}, ctx=ctx)

    async def write(self) -> None:
        """A write in a run of a few calls; no run of these has read a foreign page."""
        number = next(self._numbers)
        ctx = aa.ToolContext(run_id=f"notes {number // 20}")
        await self.executor.run("note", {"number": number}, ctx=ctx)

    async def approval(self) -> None:
        """A call that a person agrees to, and that is then resumed."""
        number = next(self._numbers)
        try:
            await self.executor.run(
                "pay", {"number": number}, ctx=aa.ToolContext(run_id=f"pay {number}")
            )
        except aa.ApprovalPending as pending:
            await aa.Inbox(self.store).approve(pending.id, reviewer="ann")
            await self.executor.resume(pending.id)

    async def channel(self) -> None:
        """A channel in which a person and an agent talk, until it is closed."""
        (ann,) = self._people
        echo = self.hub.name_to_id_map()["echo"]
        channel = await ann.open(type="conversation", target=[echo])
        for turn in range(TURNS):
            await channel.send(f"text {turn} " + "x" * 500)
            await self.hub.idle()
        await self.hub.close_channel(channel.channel_id, "enough")

    async def repeat(self, kind: str) -> None:
        """Do one kind of work again and again, and measure it."""
        work: Callable[[], Awaitable[None]] = getattr(self, kind)
        while True:
            begun = time.perf_counter()
            await work()
            self.window.latencies[kind].append(time.perf_counter() - begun)
            await asyncio.sleep(PAUSE[kind])

    async def prune(self) -> None:
        """Carry retention out now and then, as a hub does every hour."""
        while True:
            await asyncio.sleep(PRUNE_SECONDS)
            await retention.apply(self.store, by="soak")

    async def measured(self, seconds: float) -> Window:
        """What happens in so many seconds."""
        self.window = Window()
        await asyncio.sleep(seconds)
        done = self.window
        done.labels = await self.store.read(lambda tx: tx.count("taints"))
        done.descriptors = _descriptors()
        done.size = _size(self.store.path)
        done.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return done


async def _answer(text: Any) -> str:
    """Answer the newest text."""
    return f"heard {text}"


def _descriptors() -> int:
    folder = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
    return len(os.listdir(folder))


def _size(path: Path) -> int:
    return sum(
        os.stat(file).st_size for end in ("", "-wal") if (file := Path(f"{path}{end}")).exists()
    )


def growth(windows: Sequence[Window], seconds: float) -> list[str]:
    """What is worse in the last window than it was when the load was steady."""
    steady = math.ceil(STEADY_SECONDS / seconds)
    first, last = windows[max(steady, len(windows) // 2) - 1], windows[-1]
    found = [
        f"{kind}: 95 of 100 took up to {first.p95(kind) * 1000:.1f} ms, later"
        f" {last.p95(kind) * 1000:.1f} ms"
        for kind in PAUSE
        if last.p95(kind) > first.p95(kind) * SLOWER + SLACK_SECONDS
    ]
    if last.labels > first.labels * LARGER + THREADS:
        found.append(f"labels: {first.labels}, later {last.labels}")
    if last.descriptors > first.descriptors + MORE_DESCRIPTORS:
        found.append(f"descriptors: {first.descriptors}, later {last.descriptors}")
    if last.size > first.size * LARGER + SLACK_BYTES:
        found.append(f"file: {first.size:,} bytes, later {last.size:,}")
    return found


async def _ended(soak: Soak) -> list[str]:
    """Verify the ledger; prune everything, and see that its space is given back."""
    report = await ledger.verify(soak.store)
    found = list(report.problems)
    before = _size(soak.store.path)
    gone = await upkeep.prune(soak.store, before=time.time() + 1, by="soak")
    await retention.give_back(soak.store)
    after = _size(soak.store.path)
    print(f"pruned {gone} runs at the end: {before:,} bytes before, {after:,} after")
    if gone and after >= before:
        found.append(f"space: {before:,} bytes before {gone} runs were pruned, {after:,} after")
    found += (await ledger.verify(soak.store)).problems
    if soak.hub.late_refusals:
        found.append(f"{soak.hub.late_refusals} operations were refused after they had written")
    return found


def _show(number: int, window: Window) -> None:
    took = "  ".join(
        f"{kind} {len(window.latencies[kind]):>5} p95 {window.p95(kind) * 1000:6.1f} ms"
        for kind in PAUSE
    )
    print(
        f"{number:>3}  {took}  labels {window.labels}  descriptors {window.descriptors}"
        f"  file {window.size / 1e6:.1f} MB  memory {window.memory / 1024:.0f} MB",
        flush=True,
    )


async def soak(path: Path, minutes: float) -> list[str]:
    """Run the load; what was found wrong."""
    kept = Retention(runs=KEPT, channels=KEPT, audit=KEPT)
    store = aa.open_store(path, retention=kept)
    assert isinstance(store, SqliteStore)  # noqa: S101 - the path of a file
    seconds = min(60.0, minutes * 60 / 6)
    windows = []
    async with await Hub.open(store) as hub:
        made = Soak(store, hub)
        await made.join()
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(made.repeat(kind)) for kind in PAUSE]
            work.append(group.create_task(made.prune()))
            for number in range(round(minutes * 60 / seconds)):
                windows.append(await made.measured(seconds))
                _show(number + 1, windows[-1])
            for task in work:
                task.cancel()
        await hub.idle()
        found = growth(windows, seconds) + await _ended(made)
    await store.aclose()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if something grew or broke, else 0."""
    parser = argparse.ArgumentParser(prog="python -m workloads.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args(arguments)
    if options.minutes < LEAST_MINUTES:
        parser.error(
            f"--minutes is {LEAST_MINUTES:g} or more: what is kept for a minute goes first"
        )
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        found = asyncio.run(soak(Path(folder) / "state.db", options.minutes))
    for problem in found:
        print(f"grew or broke: {problem}", file=sys.stderr)
    print("failed" if found else f"{options.minutes:g} minutes, and nothing grew")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
