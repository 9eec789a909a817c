"""One hub per store: the second is refused, a dead one replaced, a stale one writes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import NetworkError
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.hub.leases import HubReplaced
from agent_adapter.store import open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import TransitionGraph, scene

pytestmark = pytest.mark.anyio

_HOLDER = """
import asyncio, sys
from agent_adapter.network.hub.hub import Hub
async def main():
    hub = await Hub.open(sys.argv[1])
    print("open", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def _two_people(at: Any) -> Any:
    await at.person("ana")
    await at.person("bob")
    graph = TransitionGraph.round_robin(at.names("ana", "bob"))
    return await at.open("ana", ["bob"], graph)


async def test_a_second_hub_on_one_memory_store_is_refused() -> None:
    """The first one is alive."""
    store = MemoryStore()
    async with await Hub.open(store):
        with pytest.raises(NetworkError, match="is served by another hub"):
            await Hub.open(store)


async def test_a_hub_that_was_closed_makes_room() -> None:
    """Closing gives the lease back."""
    store = MemoryStore()
    await (await Hub.open(store)).close()
    await (await Hub.open(store)).close()


async def test_a_second_process_is_refused_and_told_who_serves(tmp_path: Path) -> None:
    """The error names the process, so that somebody can look for it."""
    path = tmp_path / "hub.db"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        with pytest.raises(NetworkError, match=f"process {holder.pid}"):
            await Hub.open(path)
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()
    await (await Hub.open(path)).close()


async def test_two_opened_stores_of_one_file_have_one_hub(tmp_path: Path) -> None:
    """Also within one process."""
    path = tmp_path / "hub.db"
    async with await Hub.open(path):
        with pytest.raises(NetworkError, match="is served by another hub"):
            await Hub.open(path)


async def test_a_hub_that_was_replaced_accepts_nothing() -> None:
    """Its envelope is refused, and is not in the log."""
    store = MemoryStore()
    async with scene(store) as at:
        channel = await _two_people(at)
        await store.write(lambda tx: tx.update("leases", {"name": "hub"}, {"holder": "hub_other"}))
        before = len(await at.log(channel))
        with pytest.raises(HubReplaced, match="does not serve its store any more"):
            await channel.send("too late")
        assert len(await at.log(channel)) == before
        await store.write(
            lambda tx: tx.update("leases", {"name": "hub"}, {"holder": at.hub._holder})
        )


async def test_an_envelope_is_never_accepted_by_both(tmp_path: Path) -> None:
    """After a take-over the stale hub's acceptance of the same message is refused."""
    path = tmp_path / "hub.db"
    stale_store, fresh_store = open_store(path), open_store(path)
    async with scene(stale_store) as stale:
        channel = await _two_people(stale)
        # The first process is taken for dead, as it is after a long stop.
        await stale_store.write(
            lambda tx: tx.update("leases", {"name": "hub"}, {"owner_id": "epo_0000000000000000"})
        )
        async with scene(fresh_store) as fresh:
            await fresh.person("ana")
            again = await fresh.people["ana"].channel(channel.channel_id)
            await again.send("mine")
            with pytest.raises(HubReplaced):
                await channel.send("mine, too")
            assert await fresh.said(again) == [("ana", "mine")]
    await stale_store.aclose()
    await fresh_store.aclose()


async def test_hydrating_reads_what_is_open_and_not_what_was_said(tmp_path: Path) -> None:
    """Opening a hub touches no envelope."""
    touched: list[str] = []

    class Watched:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            value = getattr(self._inner, name)
            if name in ("get", "insert", "update", "delete", "select", "count"):
                return lambda table, *a, **k: (touched.append(table), value(table, *a, **k))[1]
            return value

    class WatchedStore(MemoryStore):
        async def write(self, op: Any) -> Any:
            return await super().write(lambda tx: op(Watched(tx)))

    store = WatchedStore()
    async with scene(store) as at:
        channel = await _two_people(at)
        for turn in range(40):
            await at.people["ana" if turn % 2 == 0 else "bob"].send(channel.channel_id, "x")
    touched.clear()
    hub = await Hub.open(store)
    opened = list(touched)
    await hub.close()
    assert opened.count("envelopes") <= 1  # the newest position, and no message
    assert len(opened) < 20
