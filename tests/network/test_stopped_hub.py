"""A real process that is stopped (SIGSTOP) past its lease, and goes on (SIGCONT)."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_adapter.core.errors import NetworkError
from agent_adapter.exec import ledger
from agent_adapter.flow.envelope import EV_TEXT
from agent_adapter.network import Hub
from agent_adapter.store.sqlite import owners
from tests.network._stopped_hub import DEAD_AFTER

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIMIT = 60.0


@asynccontextmanager
async def speaking(path: Path, how: str) -> AsyncIterator[tuple[Process, str]]:
    """The process, and the channel that it has opened."""
    command = (sys.executable, "-m", "tests.network._stopped_hub", str(path), how)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        word, channel_id = (await answer(process)).split()
        assert word == "ready"
        yield process, channel_id
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def answer(process: Process) -> str:
    """The next line that the process says."""
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT):
        return (await process.stdout.readline()).decode().strip()


async def say(process: Process, text: str) -> str:
    """Let the process speak; how it went."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    return await answer(process)


async def opened(path: Path) -> Hub:
    """A hub of this process, as soon as nobody else serves the store."""
    until = time.monotonic() + LIMIT
    while True:
        try:
            return await Hub.open(path, ttl_sweep_interval=0, expectation_sweep_interval=0)
        except NetworkError as exc:
            assert "is served by another hub" in str(exc) and time.monotonic() < until
            await asyncio.sleep(0.05)


async def texts(hub: Hub, channel_id: str) -> list[str]:
    """What was said in the channel."""
    log = await hub.read_wal(channel_id)
    return [item.event_data["text"] for item in log if item.event_type == EV_TEXT]


async def test_a_hub_stopped_past_its_lease_writes_nothing_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where heartbeats tell who lives another hub takes over; the first is refused, and knows."""
    defaults = owners.Owner.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "locks", None)
    monkeypatch.setattr(owners, "DEAD_AFTER_SECONDS", DEAD_AFTER)
    path = tmp_path / "hub.db"
    async with speaking(path, "ROWS") as (process, channel_id):
        assert await say(process, "one") == "ok"
        process.send_signal(signal.SIGSTOP)
        hub = await opened(path)
        assert await texts(hub, channel_id) == ["one"]
        process.send_signal(signal.SIGCONT)
        assert await say(process, "two") == "hub-replaced"
        assert await texts(hub, channel_id) == ["one"]
        assert (await ledger.verify(hub.store)).problems == ()
        await hub.close()


async def test_a_stopped_hub_keeps_its_lease_where_locks_tell(tmp_path: Path) -> None:
    """The process lives, so nobody takes over, however long it stands; then it goes on."""
    path = tmp_path / "hub.db"
    async with speaking(path, "LOCKS") as (process, channel_id):
        assert await say(process, "one") == "ok"
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(NetworkError, match="is served by another hub"):
            await Hub.open(path)
        process.send_signal(signal.SIGCONT)
        assert await say(process, "two") == "ok"
        process.kill()
        await process.wait()
        hub = await opened(path)
        assert await texts(hub, channel_id) == ["one", "two"]
        assert (await ledger.verify(hub.store)).problems == ()
        await hub.close()
