"""A channel that was changed in the file: found by `verify`, and not gone on with."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.exec import ledger
from agent_adapter.network.channels.integrity import ChannelAltered
from agent_adapter.store.sqlite import SqliteStore
from tests.network._scene import (
    AgentTarget,
    FakeClock,
    FromSpeaker,
    RoundRobinTarget,
    Scene,
    Transition,
    TransitionGraph,
    scene,
)

pytestmark = pytest.mark.anyio

CHANGES = {
    "text": "UPDATE envelopes SET body = replace(body, 'pay 5', 'pay 9') WHERE channel_id = :c",
    "sender": "UPDATE envelopes SET sender_id = 'agt_eve' WHERE channel_id = :c AND seq = 5",
    "sender in the text": "UPDATE envelopes SET body = replace(body, 'env_', 'env_x')"
    " WHERE channel_id = :c AND seq = 5",
    "audience": "UPDATE envelopes SET audience = '[]' WHERE channel_id = :c AND seq = 5",
    "default target": "UPDATE graphs SET data = replace(data, 'round_robin', 'terminate')"
    " WHERE hash = (SELECT graph_hash FROM channels WHERE channel_id = :c)",
    "graph": "UPDATE channels SET graph_hash = NULL WHERE channel_id = :c",
    "graph deleted": "DELETE FROM graphs WHERE hash ="
    " (SELECT graph_hash FROM channels WHERE channel_id = :c)",
    "state": "UPDATE channels SET folded = replace(folded, '5', '6') WHERE channel_id = :c",
    "metadata": "UPDATE channels SET metadata = '{' WHERE channel_id = :c",
    "participant": "UPDATE channel_members SET name = 'eve' WHERE channel_id = :c AND position = 1",
    "cut": "DELETE FROM envelopes WHERE channel_id = :c AND seq = (SELECT max(seq) FROM envelopes"
    " WHERE channel_id = :c)",
    "cut in the middle": "DELETE FROM envelopes WHERE channel_id = :c AND seq = 4",
    "inserted": "INSERT INTO envelopes (channel_id, seq, envelope_id, body)"
    " SELECT channel_id, 99, 'env_x', body FROM envelopes WHERE channel_id = :c AND seq = 5",
    "order": "UPDATE envelopes SET seq = CASE seq WHEN -5 THEN 4 ELSE 5 END"
    " WHERE channel_id = :c AND seq IN (-4, -5)",
    "turn": "UPDATE turns SET agent_id = 'agt_eve' WHERE channel_id = :c AND state = 'due'",
    "chain": "DELETE FROM ledger WHERE run_id = '#channel:' || :c AND seq = 3",
    "end of the chain": "DELETE FROM ledger WHERE run_id = '#channel:' || :c AND seq ="
    " (SELECT max(seq) FROM ledger WHERE run_id = '#channel:' || :c)",
    "head": "DELETE FROM chain_heads WHERE run_id = '#channel:' || :c",
}


def change(path: Path, sql: str, channel_id: str) -> None:
    """Run one statement on the file, as somebody who may write it."""
    connection = sqlite3.connect(path, isolation_level=None)
    if "-5" in sql:
        for seq in (4, 5):
            connection.execute(
                "UPDATE envelopes SET seq = -seq WHERE channel_id = ? AND seq = ?",
                (channel_id, seq),
            )
    assert connection.execute(sql, {"c": channel_id}).rowcount > 0
    connection.close()


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Scene]:
    """A hub on the file, with ana and bob."""
    store = SqliteStore(path, clock=FakeClock())
    async with scene(store) as at:
        await at.person("ana")
        await at.person("bob")
        yield at
    await store.aclose()


async def talk(at: Scene) -> str:
    """A channel in which both have spoken, and ana is next."""
    ana, bob = at.names("ana", "bob")
    graph = TransitionGraph(
        initial_speaker=ana,
        transitions=[Transition(FromSpeaker(ana), AgentTarget(bob))],
        default_target=RoundRobinTarget(),
    )
    channel = await at.open("ana", ["bob"], graph, context_vars={"n": 5})
    await channel.send("pay 5")
    bobs = await at.people["bob"].channel(channel.channel_id)
    await bobs.send("done")
    await at.hub.idle()
    return channel.channel_id


async def say(at: Scene, channel_id: str) -> Any:
    """What ana says next in the channel."""
    channel = await at.people["ana"].channel(channel_id)
    return await channel.send("more")


@pytest.mark.parametrize("changed", CHANGES)
async def test_a_channel_changed_in_the_file_is_refused_and_the_others_go_on(
    changed: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """R16, T12: `verify` finds it; the next hub says so in log and audit, and takes nothing."""
    path = tmp_path / "hub.db"
    async with opened(path) as at:
        bad, good = await talk(at), await talk(at)
    change(path, CHANGES[changed], bad)
    store = SqliteStore(path)
    report = await ledger.verify(store)
    await store.aclose()
    assert not report.ok
    with caplog.at_level(logging.ERROR, "agent_adapter.network"):
        async with opened(path) as at:
            with pytest.raises(ChannelAltered, match=f"channel {bad} was changed in the store"):
                await say(at, bad)
            with pytest.raises(ChannelAltered, match="starts no turns: run `agent-adapter ledger"):
                await at.hub.close_channel(bad)
            await at.hub.run_expectations()
            await at.hub.poll()
            if "graph" not in changed and "target" not in changed:
                await say(at, good)
            records = await at.hub.audit_log.of_channel(bad)
            assert [each["kind"] for each in records].count("channel_altered") == 1
            assert good in {each.channel_id for each in await at.hub.list_channels()}
    assert sum(bad in line.message for line in caplog.records) >= 1


async def test_a_turn_of_a_changed_channel_is_not_started(tmp_path: Path) -> None:
    """A due turn waits; the turn of another channel is run."""
    path = tmp_path / "hub.db"
    ran: list[str] = []

    async def bot(turn: Any) -> str:
        ran.append(turn.channel_id)
        return "yes"

    store = SqliteStore(path, clock=FakeClock())
    async with scene(store) as at:
        await at.person("ana")
        await at.agent("bot", bot)
        graph = TransitionGraph.round_robin(at.names("ana", "bot"))
        opened_now = [await at.open("ana", ["bot"], graph) for _ in range(2)]
        await at.hub.detach(at.id("bot"))
        for channel in opened_now:
            await channel.send("go")
        channels = [channel.channel_id for channel in opened_now]
    await store.aclose()
    change(path, "UPDATE envelopes SET body = body || ' ' WHERE channel_id = :c", channels[0])
    store = SqliteStore(path, clock=FakeClock())
    async with scene(store) as at:
        await at.agent("bot", bot)
        await at.settle()
        await at.settle()
        waiting = await at.hub.pending_turns_for(at.id("bot"))
    await store.aclose()
    assert ran == [channels[1]]
    assert [turn.channel_id for turn in waiting] == [channels[0]]


async def test_a_hub_that_was_used_in_every_way_leaves_channels_whole(tmp_path: Path) -> None:
    """No false alarm after messages, turns, forks, closes and restarts."""
    path = tmp_path / "hub.db"
    async with opened(path) as at:
        first = await talk(at)
        log = await at.log(first)
        forked = await at.hub.fork(first, log[-1].envelope_id)
        await at.hub.resume_channel(forked)
        await at.hub.close_channel(first, "enough")
    async with opened(path) as at:
        await say(at, forked)
        await at.pass_by(700)
        report = await ledger.verify(at.hub.store)
        assert report.problems == ()
