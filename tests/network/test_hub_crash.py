"""A process that dies anywhere: nothing is lost, nothing is accepted or done twice."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.network.hub.hub import Hub
from agent_adapter.store import open_store
from tests.fakes.store import FaultyStore
from tests.network._loop import QUIET, Loop, live, still
from tests.network._loop_process import killed_at, loop_of
from tests.sampling import sample

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty store, so that not every run has to migrate one."""
    path = tmp_path_factory.mktemp("template") / "hub.db"

    async def make() -> None:
        await open_store(path).aclose()

    asyncio.run(make())
    yield path


def _fresh(template: Path, folder: Path, name: str) -> Path:
    path = folder / name
    shutil.copy(template, path)
    shutil.copy(template.with_name("hub.db.key"), path.with_name(f"{name}.key"))
    return path


async def _crashing_life(store: FaultyStore, loop: Loop) -> None:
    """A process whose store fails at some point, and for ever after."""
    try:
        async with asyncio.timeout(5):
            hub = await Hub.open(store, invite_ack_timeout=0.2, **QUIET)
            try:
                client = await loop.join(hub)
                await loop.begin(hub)
                await hub.idle()
                await client.close()
            finally:
                await hub.close()
    except AgentAdapterError:
        pass


async def test_the_loop_ends_approved_without_a_crash(template: Path, tmp_path: Path) -> None:
    """What the crash runs are compared with."""
    lines: list[str] = []
    loop = Loop(lines.append, lambda: lines)
    store = open_store(_fresh(template, tmp_path, "calm.db"))
    channel_id = await live(store, loop)
    await store.aclose()
    await _verify(tmp_path / "calm.db", channel_id, loop)


async def _verify(path: Path, channel_id: str, loop: Loop) -> None:
    store = open_store(path)
    async with await Hub.open(store, **QUIET) as hub:
        loop.check(await hub.read_wal(channel_id))
        report = await hub.replay(channel_id)
        assert report.matches, report.differences
    await store.aclose()


async def _writes_of_a_calm_run(template: Path, folder: Path) -> int:
    lines: list[str] = []
    inner = open_store(_fresh(template, folder, "count.db"))
    store = FaultyStore(inner)
    await _crashing_life(store, Loop(lines.append, lambda: lines))
    await inner.aclose()
    return store.count


@pytest.mark.slow
@pytest.mark.parametrize("applied", [False, True])
async def test_a_fault_at_any_store_write_ends_approved_after_reopening(
    template: Path, tmp_path: Path, applied: bool
) -> None:
    """At every write, before and after it is applied: each draft and count is there, once."""
    total = await _writes_of_a_calm_run(template, tmp_path)
    assert total > 30
    for fail_at in range(1, total + 1):
        lines: list[str] = []
        loop = Loop(lines.append, lambda lines=lines: lines)
        path = _fresh(template, tmp_path, f"{applied}{fail_at}.db")
        inner = open_store(path)
        await _crashing_life(
            FaultyStore(inner, fail_at=fail_at, applied=applied, lasting=True), loop
        )
        await inner.aclose()
        store = open_store(path)
        channel_id = await live(store, loop)
        await store.aclose()
        await _verify(path, channel_id, loop)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("applied", [False, True])
async def test_a_process_killed_at_any_store_write_ends_approved_after_a_new_start(
    template: Path, tmp_path: Path, applied: bool
) -> None:
    """SIGKILL at every write in turn, before it and when it is durable."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.network._loop_process"])
    total = await _writes_of_a_calm_run(template, tmp_path)
    for fail_at in range(1, total + 1):
        path, effects = _fresh(template, tmp_path, f"k{fail_at}.db"), tmp_path / f"k{fail_at}.txt"
        effects.touch()
        worker = forks.Process(target=killed_at, args=(str(path), str(effects), fail_at, applied))
        worker.start()
        await asyncio.to_thread(worker.join)
        assert worker.exitcode in (0, -signal.SIGKILL)
        worker.close()
        loop, store = loop_of(effects, 3), open_store(path)
        channel_id = await live(store, loop)
        await store.aclose()
        await _verify(path, channel_id, loop)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(sample("seeds of random kills", quick=2, full=4)))
async def test_a_process_killed_at_random_ends_approved_after_enough_starts(
    template: Path, tmp_path: Path, seed: int
) -> None:
    """SIGKILL in the middle of rounds, again and again; the last process finds the end."""
    chance = random.Random(seed)
    path, effects = _fresh(template, tmp_path, "kill.db"), tmp_path / "effects.txt"
    effects.touch()
    kills = 0
    for _ in range(40):
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.network._loop_process",
            str(path),
            str(effects),
            "80",
            stdout=asyncio.subprocess.PIPE,
        )
        assert worker.stdout is not None
        if (await worker.stdout.readline()).strip() != b"ready":
            raise AssertionError(f"the process ended with {await worker.wait()}")
        if kills < 6:
            await asyncio.sleep(chance.uniform(0.0, 0.1))
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
        killed = await worker.wait() != 0
        kills += killed
        if not killed:
            break
    loop = loop_of(effects, 80)
    store = open_store(path)
    channel_id = await live(store, loop)
    await store.aclose()
    await _verify(path, channel_id, loop)
    assert kills >= 2


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("applied", [False, True])
async def test_one_fault_in_a_living_hub_does_not_stop_the_channel(
    template: Path, tmp_path: Path, applied: bool
) -> None:
    """A write that failed once, at any place: the same hub goes on to the end by itself."""
    total = await _writes_of_a_calm_run(template, tmp_path)
    opening = 8
    for fail_at in range(opening, total + 1):
        lines: list[str] = []
        loop = Loop(lines.append, lambda lines=lines: lines)
        inner = open_store(_fresh(template, tmp_path, f"one{fail_at}.db"))
        store = FaultyStore(inner, fail_at=fail_at, applied=applied)
        hub = await Hub.open(store, invite_ack_timeout=0.2, **QUIET)
        client = await loop.join(hub)
        channel_id = None
        while channel_id is None:
            with contextlib.suppress(AgentAdapterError):
                channel_id = await loop.begin(hub)
        await still(hub, loop)
        loop.check(await hub.read_wal(channel_id))
        assert (await hub.replay(channel_id)).matches
        await client.close()
        await hub.close()
        await inner.aclose()
