"""A disk that is really full: a small file system in memory, or a limit on the size of files."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import StoreError
from agent_adapter.exec import ledger
from agent_adapter.store.base import Store

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@dataclass(frozen=True, slots=True)
class Disk:
    """A folder whose disk can be filled, and emptied again."""

    folder: Path
    fill: Callable[[], None]
    free: Callable[[], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A tmpfs of 8 MB where this user may mount one; else no file may grow."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode == 0:
        try:
            yield _of_tmpfs(tmp_path)
        finally:
            subprocess.run(["umount", "-l", str(tmp_path)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield Disk(
            tmp_path,
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard)),
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _of_tmpfs(folder: Path) -> Disk:
    filler = folder / "filler"

    def fill() -> None:
        with contextlib.suppress(OSError), filler.open("ab", buffering=0) as file:
            for size in (65_536, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    return Disk(folder, fill, filler.unlink)


class Paying:
    """A write that notes its effects outside, and does something to the disk as it runs."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.then: Callable[[], None] = lambda: None
        self.registry = aa.ToolRegistry()

        @self.registry.tool
        def pay(number: int) -> str:
            """Pay one invoice."""
            self.paid.append(number)
            self.then()
            return "paid" + "." * 8000

    async def run(self, store: Store, number: int) -> None:
        """One call, in a run of its own."""
        executor = aa.Executor(self.registry, store=store)
        await executor.run("pay", {"number": number}, ctx=aa.ToolContext(run_id=f"run {number}"))


async def test_no_write_begins_on_a_full_disk_and_all_do_again_when_there_is_room(
    disk: Disk,
) -> None:
    """R10: the call is refused before its effect; afterwards the store is whole and goes on."""
    store = aa.open_store(disk.folder / "state.db")
    paying = Paying()
    await paying.run(store, 1)
    disk.fill()
    with pytest.raises(StoreError, match="see that the disk has room"):
        for number in range(2, 40):
            await paying.run(store, number)
    began = len(paying.paid)
    disk.free()
    await paying.run(store, 100)
    assert paying.paid == [*range(1, began + 1), 100]
    report = await ledger.verify(store)
    await store.aclose()
    assert report.problems == () and report.in_doubt <= 1


async def test_an_effect_whose_outcome_does_not_fit_is_known_once_there_is_room(
    disk: Disk,
) -> None:
    """R10: the disk fills up inside the tool; the write is recorded later or is in doubt, once."""
    store = aa.open_store(disk.folder / "state.db")
    paying = Paying()
    await paying.run(store, 1)
    paying.then = disk.fill
    with contextlib.suppress(aa.AgentAdapterError):
        await paying.run(store, 2)
    disk.free()
    paying.then = lambda: None
    await store.flush()
    rows = await store.read(lambda tx: tx.select("calls", {"run_id": "run 2"}))
    doubts = {row["call_key"] for row in await ledger.in_doubt(store)}
    (row,) = rows
    assert row["ending"] == "ok" or row["call_key"] in doubts
    with contextlib.suppress(aa.ToolInDoubt):
        executor = aa.Executor(paying.registry, store=store)
        ctx = aa.ToolContext(run_id="run 2", attempt=2)
        await executor.run("pay", {"number": 2}, ctx=ctx)
    assert paying.paid == [1, 2]
    assert (await ledger.verify(store)).problems == ()
    await store.aclose()
