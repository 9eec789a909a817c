"""Participants in processes of their own, joined to a hub here over a WebSocket."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import agent_adapter as aa
from agent_adapter.network import (
    EV_TEXT,
    Channel,
    Envelope,
    Hub,
    HubClient,
    HumanClient,
    LocalLink,
    Passport,
    TokenAuth,
    WebSocketServer,
    serve,
)
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

pytest.importorskip("websockets")

TOKEN = "a-token-of-sixteen-or-more"

Process = asyncio.subprocess.Process


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    """A hub over memory."""
    async with await Hub.open(MemoryStore(), ttl_sweep_interval=0) as opened:
        yield opened


@pytest.fixture
async def server(hub: Hub) -> AsyncIterator[WebSocketServer]:
    """The hub's door, for the name `bot` alone; who is gone is given up at once."""
    async with serve(hub, authenticator=TokenAuth({TOKEN: "bot"}), grace=0.05) as made:
        yield made


@pytest.fixture
async def anna(hub: Hub) -> AsyncIterator[HumanClient]:
    """A person in the hub's own process."""
    async with HubClient(LocalLink(hub)) as client:
        yield await client.register_human(Passport(name="anna"))


@asynccontextmanager
async def joined(name: str, server: WebSocketServer, folder: Path) -> AsyncIterator[Process]:
    """A process of its own that has joined the hub, and is killed at the end."""
    command = [sys.executable, "-m", "tests.network._far", name, server.url, str(folder)]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "HUB_TOKEN": TOKEN}
    )
    try:
        assert await heard(process) == "ready"
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def heard(process: Process) -> str:
    """The next word of a process."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


async def asked(anna: HumanClient, text: str = "hello") -> Channel:
    """A question to the participant elsewhere."""
    channel = await anna.open(type="consulting", target="bot")
    await channel.send(text)
    return channel


async def answer(anna: HumanClient) -> str:
    """What comes back."""

    def is_text(envelope: Envelope) -> bool:
        return envelope.event_type == EV_TEXT

    return str((await anna.next_envelope(predicate=is_text, timeout=60)).event_data["text"])


async def test_second_process_takes_part(
    anna: HumanClient, server: WebSocketServer, tmp_path: Path
) -> None:
    """A participant in another process takes its turn there, and its answer comes back here."""
    async with joined("echo", server, tmp_path) as process:
        await asked(anna)
        assert await answer(anna) == f"heard hello in {process.pid}"


async def test_killed_process_does_not_pay_twice(
    anna: HumanClient, server: WebSocketServer, tmp_path: Path
) -> None:
    """A process killed in its round is followed by another, whose round repeats no write."""
    async with joined("pay", server, tmp_path) as first:
        await asked(anna)
        assert await heard(first) == "paid"
        first.send_signal(signal.SIGKILL)
        await first.wait()
    await gone(anna.hub_client.hub)
    async with joined("pay", server, tmp_path):
        assert await answer(anna) == "paid 7, attempt 2"
    assert (tmp_path / "effects").read_text() == "7\n"


async def test_decision_elsewhere_lets_the_turn_go_on(
    hub: Hub, anna: HumanClient, server: WebSocketServer, tmp_path: Path
) -> None:
    """A turn that waits for a person is parked here, and goes on when they decide there."""
    async with joined("ask", server, tmp_path):
        await asked(anna)
        store = aa.open_store(f"sqlite:///{tmp_path / 'far.db'}")
        inbox = aa.Inbox(store)
        waiting = await until_pending(inbox)
        bot = hub.find_agent_id("bot") or ""
        async with asyncio.timeout(120):
            while [turn.state for turn in await hub.pending_turns_for(bot)] != ["parked"]:
                await asyncio.sleep(0.01)
        await inbox.approve(waiting, reviewer="anna")
        assert await answer(anna) == "refunded 7"
        await store.aclose()
    assert (tmp_path / "effects").read_text() == "7\n"


async def until_pending(inbox: aa.Inbox) -> str:
    """The id of the one question that is put to a person."""
    async with asyncio.timeout(120):
        while not (found := await inbox.list()):
            await asyncio.sleep(0.01)
    return str(found[0].id)


async def gone(hub: Hub | None) -> None:
    """Return when the hub has given up on `bot`."""
    assert hub is not None
    async with asyncio.timeout(120):
        while hub.is_connected(hub.find_agent_id("bot") or ""):
            await asyncio.sleep(0.01)
