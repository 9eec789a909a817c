"""`Resume.observed` is filled from the ledger: how often, how it ended, how long it took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.network import Passport, Resume
from agent_adapter.store import open_store
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


@aa.tool(effects="read")
async def look_up(word: str) -> str:
    """Look a word up."""
    if "missing" in word:
        raise aa.ToolError("no such word")
    return f"{word}: a word"


async def _scribe(turn: Any) -> str:
    try:
        return str(await turn.call(look_up, word=turn.input_text))
    except aa.ToolError:
        return "I do not know it"


async def _register(at: Scene, *claims: str) -> Any:
    client = await at.client.register(
        _scribe,
        Passport(name="scribe"),
        Resume(claimed_capabilities=list(claims)),
        attach_plugin=False,
    )
    await at.person("ana")
    return client


async def _observed(at: Scene, client: Any) -> dict[str, tuple[int, int, int]]:
    await at.hub.count_uses()
    resume = await at.hub.get_resume(client.agent_id)
    return {name: (stat.n, stat.completed, stat.failed) for name, stat in resume.observed.items()}


async def test_calls_count_for_the_claimed_capability_of_their_tool() -> None:
    """One that worked and one that failed; other capabilities are left alone."""
    async with scene() as at:
        client = await _register(at, "look_up", "writing")
        for word in ("moon", "missing"):
            graph = TransitionGraph.sequence(at.names("ana", "scribe"))
            channel = await at.open("ana", ["scribe"], graph)
            await channel.send(word)
            await at.settle()
        assert await _observed(at, client) == {"look_up": (2, 1, 1)}
        assert await _observed(at, client) == {"look_up": (2, 1, 1)}, "counted once"


async def test_a_turn_counts_for_the_label_of_its_channel() -> None:
    """`labels={"capability": …}` says what the channel asks for."""
    async with scene() as at:
        client = await _register(at, "a", "b")
        channel = await at.people["ana"].open(
            type="consulting", target=["scribe"], labels={"capability": "research"}
        )
        await channel.send("moon")
        await at.settle()
        assert await _observed(at, client) == {"research": (1, 1, 0)}


async def test_it_is_counted_once_over_a_restart(tmp_path: Path) -> None:
    """The cursor is in the store, with what was counted."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        client = await _register(at, "telling")
        channel = await at.people["ana"].open(type="consulting", target=["scribe"])
        await channel.send("moon")
        await at.settle()
        assert await _observed(at, client) == {"telling": (1, 1, 0)}
    async with scene(store) as at:
        client = await _register(at, "telling")
        assert await _observed(at, client) == {"telling": (1, 1, 0)}
    await store.aclose()


async def test_nothing_is_read_where_nothing_happened() -> None:
    """An idle hub asks its store for nothing."""
    async with scene() as at:
        await at.hub.count_uses()
        reads = 0
        write = at.hub.store.write

        async def counted(op: Any) -> Any:
            nonlocal reads
            reads += 1
            return await write(op)

        at.hub.store.write = counted  # type: ignore[method-assign]
        await at.hub._scheduler.count_uses()
        assert reads == 0
