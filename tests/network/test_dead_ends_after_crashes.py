"""Wherever a process is killed in a channel: somebody can go on, and whoever waits is told."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.exec import ledger
from agent_adapter.network.hub.hub import Hub
from agent_adapter.store import open_store
from tests.network._walk import ENDS, TYPES, Walk, dead_ends, killed_at, opened
from tests.sampling import sample

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WRITES = range(1, 19)
"""A walk has about as many; one that has fewer ends without a crash."""

ALL = list(product(TYPES, ENDS, WRITES, (False, True)))
TAKEN = sample("walks over channel types, endings and crashes", quick=12, full=len(ALL))
# A step that shares no factor with the lists, so that a sample has something of each.
CASES = [ALL[(place * 47 + 11) % len(ALL)] for place in range(TAKEN)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty store, so that not every run has to migrate one."""
    path = tmp_path_factory.mktemp("template") / "hub.db"
    asyncio.run(_made(path))
    yield path


async def _made(path: Path) -> None:
    await open_store(path).aclose()


@pytest.mark.parametrize(("type", "end", "fail_at", "applied"), CASES)
async def test_no_dead_end_after_a_kill(
    template: Path, tmp_path: Path, type: str, end: str, fail_at: int, applied: bool
) -> None:
    """SIGKILL at a write of a walk; the next process finds no dead end, and comes to the end."""
    path, effects = tmp_path / "hub.db", tmp_path / "effects.txt"
    shutil.copy(template, path)
    shutil.copy(template.with_name("hub.db.key"), path.with_name("hub.db.key"))
    effects.touch()
    await asyncio.to_thread(_killed, str(path), str(effects), type, end, fail_at, applied)
    store = open_store(path)
    hub = await opened(store)
    try:
        assert await store.read(dead_ends) == []
        walk = Walk(effects, "parked" if end == "parked" else "ok")
        worker = await walk.join(hub)
        channel_id = await walk.begin(hub, type)
        await _to_the_end(hub, walk, worker, channel_id)
        assert await store.read(dead_ends) == []
        assert walk.lines() == (["A1"] if end == "parked" else [])
        assert (await ledger.verify(store)).problems == ()
    finally:
        await hub.close()
        await store.aclose()


def _killed(path: str, effects: str, type: str, end: str, fail_at: int, applied: bool) -> None:
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.network._walk"])
    worker = forks.Process(
        target=killed_at, args=(path, effects, type, end, fail_at), kwargs={"applied": applied}
    )
    worker.start()
    worker.join()
    assert worker.exitcode in (0, -signal.SIGKILL)
    worker.close()


async def _to_the_end(hub: Hub, walk: Walk, worker: Any, channel_id: str) -> None:
    """Until the worker has answered; each pause is looked at as a person and a program would."""
    async with asyncio.timeout(60):
        while True:
            await hub.poll()
            await hub.idle()
            data = [item.event_data for item in await hub.read_wal(channel_id)]
            answers = [item for item in data if "done" in (item.get("text"), item.get("body"))]
            if answers:
                assert len(answers) == 1
                return
            assert await hub.store.read(dead_ends) == []
            await walk.decide(hub)
            await worker.resume_pending_turns()
            await walk.ask_again(hub, channel_id)
            await asyncio.sleep(0.01)
