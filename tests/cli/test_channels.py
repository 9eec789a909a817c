"""`agent-adapter channels`."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.network import Hub, HubClient, LocalLink, Passport, TransitionGraph, Turn

from .conftest import Run

tools = aa.ToolRegistry()


@tools.tool
def post(text: str) -> str:
    """Posts a letter."""
    return f"posted {text}"


async def _worker(turn: Turn) -> str:
    return str(await turn.call(post, text="a letter"))


async def _talk(hub: Hub, *, answered: bool = True) -> str:
    """A channel of user and worker; without an answer it waits for the person."""
    hc = HubClient(LocalLink(hub))
    user = await hc.register_human(Passport(name="user"))
    worker = await hc.register(_worker, Passport(name="worker"), attach_plugin=False)
    graph = TransitionGraph.sequence([user.agent_id, worker.agent_id])
    knobs = {"graph": graph.to_dict(), "context_vars": {"colour": "red"}}
    channel = await user.open(type="workflow", target="worker", knobs=knobs)
    if answered:
        await channel.send("Post it, \x1b[2J please")
        await user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=lambda e: "reason" in e.event_data
        )
    return channel.channel_id


async def _one(**options: Any) -> str:
    async with await Hub.open() as hub:
        return await _talk(hub, **options)


@pytest.fixture
def ended(run: Run) -> str:
    """A channel that has ended, in the default store of the folder."""
    return asyncio.run(_one())


def test_list_shows_open_channels(run: Run) -> None:
    """The list names the participants and who is expected."""
    channel = asyncio.run(_one(answered=False))
    [line] = run("channels", "list", "--json").json
    assert (line["channel_id"], line["expected"]) == (channel, "user")
    assert line["participants"] == ["user", "worker"]


def test_list_leaves_out_what_has_ended(run: Run, ended: str) -> None:
    """An ended channel is listed on request, with its reason."""
    assert run("channels", "list").err.strip() == "no open channels"
    out = run("channels", "list", "--state", "closed").out
    assert ended in out
    assert "sequence_complete" in out


def test_show(run: Run, ended: str) -> None:
    """One channel with its variables, its latest turn and why it ended."""
    shown = run("channels", "show", ended)
    assert "sequence_complete" in shown.out
    assert '"colour": "red"' in shown.out
    report = run("channels", "show", ended, "--json").json
    assert (report["turn"]["of"], report["turn"]["state"]) == ("worker", "done")


def test_an_unknown_channel(run: Run, ended: str) -> None:
    """A channel that is not there is an error that names it."""
    ran = run("channels", "show", "chn_none")
    assert ran.code == 1
    assert "no channel 'chn_none'" in ran.err


def test_tail_prints_what_was_said(run: Run, ended: str) -> None:
    """The newest entries, one line each, and nothing in them acts on the terminal."""
    lines = run("channels", "tail", ended, "-n", "3").out.splitlines()
    assert len(lines) == 3
    assert "user msg.text" in lines[0]
    assert "\\u001b[2J" in lines[0]
    assert lines[1].endswith("posted a letter")
    assert lines[2].endswith("sequence_complete")


def test_tail_as_json_lines(run: Run, ended: str) -> None:
    """With `--json` each entry is an object on a line of its own."""
    out = run("channels", "tail", ended, "--json").out
    entries = [json.loads(line) for line in out.splitlines()]
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[-1]["event_type"] == "ag2.channel.closed"


def test_tail_follows_to_the_end(run: Run, ended: str) -> None:
    """`--follow` of a channel that has ended prints its log and leaves."""
    assert run("channels", "tail", ended, "--follow").code == 0


def test_replay(run: Run, ended: str) -> None:
    """The log gives the state that is kept beside it."""
    ran = run("channels", "replay", ended)
    assert ran.code == 0
    assert "match the stored state" in ran.out


def test_replay_finds_what_does_not_fit(run: Run, ended: str) -> None:
    """A state that the log does not give is exit code 4, and says what differs."""

    async def spoil() -> None:
        store = aa.open_store()
        where = {"channel_id": ended}
        await store.write(lambda tx: tx.update("channels", where, {"spoken": 9}))
        await store.aclose()

    asyncio.run(spoil())
    ran = run("channels", "replay", ended)
    assert (ran.code, ran.out.strip()) == (4, "the channel's spoken is 9, the log gives 2")


def test_fork(run: Run, ended: str) -> None:
    """A fork has the log up to the message, is paused, and lists what it does not undo."""
    entries = run("channels", "tail", ended, "--json").out.splitlines()
    first = next(e for e in map(json.loads, entries) if e["event_type"] == "ag2.msg.text")
    made = run("channels", "fork", ended, "--at", first["envelope_id"], "--json").json
    assert [write["tool"] for write in made["writes"]] == ["post"]
    report = run("channels", "show", made["channel_id"], "--json").json
    assert (report["line"]["paused"], report["entries"]) == (True, first["seq"])
    assert report["parent_channel_id"] == ended


def test_fork_at_nothing(run: Run, ended: str) -> None:
    """An envelope that the channel has not is named."""
    ran = run("channels", "fork", ended, "--at", "env_none")
    assert ran.code == 1
    assert "no envelope 'env_none'" in ran.err


def test_fork_asks_the_hub_that_runs(run: Run) -> None:
    """Where a program serves the store, that program makes the fork."""
    ready, done, told = threading.Event(), threading.Event(), dict[str, Any]()

    async def serve() -> None:
        async with await Hub.open(str(Path("served.db"))) as hub:
            told["channel"] = await _talk(hub)
            told["log"] = await hub.read_wal(told["channel"])
            ready.set()
            while not done.is_set():
                await asyncio.sleep(0.01)
            told["channels"] = len(await hub.list_channels())

    server = threading.Thread(target=asyncio.run, args=(serve(),))
    server.start()
    try:
        assert ready.wait(120)
        at = next(e for e in told["log"] if e.event_type == "ag2.msg.text").envelope_id
        url = ("--store", "sqlite:///served.db")
        made = run("channels", "fork", told["channel"], "--at", at, *url, "--json")
    finally:
        done.set()
        server.join(30)
    assert made.json["channel_id"].startswith("chn_")
    assert told["channels"] == 2


async def _closed() -> str:
    async with await Hub.open() as hub:
        channel_id = await _talk(hub, answered=False)
        await hub.close_channel(channel_id, "by mistake")
        return channel_id


def test_reopen(run: Run) -> None:
    """A channel that was closed too early is open again."""
    channel = asyncio.run(_closed())
    assert f"{channel} is active" in run("channels", "reopen", channel).out
    assert channel in run("channels", "list").out


def test_reopen_what_has_come_to_its_end(run: Run, ended: str) -> None:
    """The error says why, and what to do instead."""
    ran = run("channels", "reopen", ended)
    assert ran.code == 1
    assert "it has come to its end" in ran.err
