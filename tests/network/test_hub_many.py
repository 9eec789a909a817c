"""500 channels at once, 20 turns each: all end, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.store import open_store
from agent_adapter.store.memory import MemoryStore
from tests.network._scene import (
    AgentTarget,
    FromSpeaker,
    Scene,
    Transition,
    TransitionGraph,
    scene,
)
from tests.sampling import sample

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CHANNELS, TURNS = 500, 20
LATER = sample("channels in each later round", quick=150, full=CHANNELS)


def _says(words: str) -> Any:
    async def participant(text: str) -> str:
        return words

    return participant


async def _speakers(at: Scene) -> dict[str, Any]:
    await at.person("user")
    await at.agent("one", _says("one says this"))
    await at.agent("two", _says("two says that"))
    one, two, user = at.names("one", "two", "user")
    graph = TransitionGraph(
        initial_speaker=user,
        transitions=[
            Transition(FromSpeaker(user), AgentTarget(one)),
            Transition(FromSpeaker(one), AgentTarget(two)),
            Transition(FromSpeaker(two), AgentTarget(one)),
        ],
        max_turns=TURNS,
    )
    return graph.to_dict()


async def _one_channel(at: Scene, graph: dict[str, Any]) -> str:
    channel = await at.open("user", ["one", "two"], graph)
    await channel.send("go")
    return str(channel.channel_id)


async def _one_round(at: Scene, graph: dict[str, Any], channels: int = CHANNELS) -> None:
    ids = await asyncio.gather(*(_one_channel(at, graph) for _ in range(channels)))
    async with asyncio.timeout(240):
        while await at.hub.store.read(lambda tx: tx.count("channels", {"state": "active"})):
            await at.hub.idle()
            await asyncio.sleep(0.01)
    last = await at.hub.get_channel(ids[-1])
    assert last.close_reason == "max_turns"


def _handles() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


async def test_500_channels_end_and_leave_no_task_or_handle() -> None:
    """In memory: the same tasks and handles before and after, every channel closed."""
    before = len(asyncio.all_tasks()), _handles()
    async with scene(MemoryStore()) as at:
        await _one_round(at, await _speakers(at))
        closed = await at.hub.list_channels(state="closed", limit=1000)
        assert len(closed) == CHANNELS
    assert (len(asyncio.all_tasks()), _handles()) == before


@pytest.mark.timeout(1200)
async def test_traced_memory_does_not_grow_from_the_second_round_to_the_fifth(
    tmp_path: Path,
) -> None:
    """Less than 1 KB for each channel: nothing of a closed one stays in the process."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        graph = await _speakers(at)
        traced: list[int] = []
        await _one_round(at, graph)
        tracemalloc.start()
        try:
            # The first fills what is bounded, such as the messages that a person has not read.
            for channels in (CHANNELS, LATER, LATER, LATER):
                await _one_round(at, graph, channels)
                await at.hub.idle()
                gc.collect()
                traced.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    await store.aclose()
    assert traced[3] - traced[0] < 1_000 * 3 * LATER, traced
