"""A process that dies anywhere: nothing is lost, nothing is accepted or done twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.network.hub import Hub
from agent_adapter.store import open_store
from tests.fakes.store import FaultyStore
from tests.network._loop import Loop

pytestmark = pytest.mark.anyio

_QUIET = {"ttl_sweep_interval": 0, "expectation_sweep_interval": 0}


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


async def _life(store: Any, loop: Loop, *, invite_ack_timeout: float = 0.2) -> str | None:
    """One process: it opens the hub, joins, goes on, and ends when nothing moves any more."""
    hub = await Hub.open(store, invite_ack_timeout=invite_ack_timeout, **_QUIET)
    client = None
    try:
        await loop.settle_doubts(hub)
        client = await loop.join(hub)
        channel_id = await loop.begin(hub)
        await _still(hub, loop)
        return channel_id
    finally:
        if client is not None:
            await client.close()
        await hub.close()


async def _still(hub: Hub, loop: Loop) -> None:
    """Until no turn is due or running; doubts are settled as they come."""
    for _ in range(200):
        await hub.idle()
        await hub.poll()
        await hub.idle()
        states = await hub.store.read(_states)
        if "parked" in states:
            await loop.settle_doubts(hub)
        elif not states:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the channel does not come to rest")


def _states(tx: Any) -> set[str]:
    where = {"state in": ["due", "running", "parked"], "due_at !=": None}
    parked = tx.select("turns", {"state in": ["running", "parked"]})
    return {row["state"] for row in [*tx.select("turns", where), *parked]}


async def _crashing_life(store: FaultyStore, loop: Loop) -> None:
    """A process whose store fails at some point, and for ever after."""
    try:
        async with asyncio.timeout(5):
            hub = await Hub.open(store, invite_ack_timeout=0.2, **_QUIET)
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
    channel_id = await _life(store, loop)
    assert channel_id is not None
    await store.aclose()
    await _verify(tmp_path / "calm.db", channel_id, loop)


async def _verify(path: Path, channel_id: str, loop: Loop) -> None:
    store = open_store(path)
    async with await Hub.open(store, **_QUIET) as hub:
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
        channel_id = await _life(store, loop)
        await store.aclose()
        assert channel_id is not None, fail_at
        await _verify(path, channel_id, loop)
