"""Agents of frameworks in the channels of a hub: crashes, pauses, restarts."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tools
from agent_adapter.network import Hub, HubClient, LocalLink, Passport, TransitionGraph

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def _life(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    where = (str(folder / "life.db"), str(folder / "book.txt"))
    return subprocess.run(
        [sys.executable, "-m", "tests.network._ag2_life", *where, *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_crash_between_a_tool_and_the_packet(tmp_path: Path) -> None:
    """The AG2 agent's round is run again, its native tool is not, and what it set counts once."""
    died = _life(tmp_path, "die")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert (tmp_path / "book.txt").read_text() == "clear\n"
    lived = _life(tmp_path)
    assert lived.stdout.strip() == "approved 1", lived.stderr
    assert (tmp_path / "book.txt").read_text() == "clear\n"


class Shop:
    """A hub on a file whose AG2 agent pays, which a person must allow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paid: list[int] = []
        self.registry = aa.ToolRegistry()
        self.registry.add(
            aa.ToolSpec.from_function(self.pay, description="Pays.", confirm=True, effects="write")
        )

    def pay(self, amount: int) -> str:
        """Pays."""
        self.paid.append(amount)
        return f"paid {amount}"

    async def open(self) -> tuple[Hub, Any, Any]:
        """The hub, the person and the store."""
        store = aa.open_store(f"sqlite:///{self.path}")
        executor = aa.Executor(self.registry, approval=aa.DeferredApproval(store), store=store)
        hub = await Hub.open(store, executor=executor)
        hc = HubClient(LocalLink(hub))
        user = await hc.register_human(Passport(name="user"))
        agent = Agent(
            "till",
            config=TestConfig(ToolCallEvent("pay", arguments='{"amount": 5}'), "done"),
            tools=ag2_tools(self.registry, executor=executor),
        )
        await hc.register(agent, Passport(name="till"), attach_plugin=False)
        return hub, user, store


async def _waiting(store: Any) -> list[Any]:
    async with asyncio.timeout(120):
        while not (found := await aa.Inbox(store).list()):
            await asyncio.sleep(0.01)
    return found


async def test_a_parked_turn_outlives_its_hub(tmp_path: Path) -> None:
    """The decision falls while no hub runs; the next one goes on with the turn and pays once."""
    shop = Shop(tmp_path / "shop.db")
    hub, user, store = await shop.open()
    graph = TransitionGraph.sequence([user.agent_id, hub.find_agent_id("till") or ""])
    channel = await user.open(type="workflow", target="till", knobs={"graph": graph.to_dict()})
    await channel.send("Pay five.")
    [asked] = await _waiting(store)
    await hub._turns.dispatcher.idle()
    await hub.close()
    await store.aclose()
    assert shop.paid == []

    store = aa.open_store(f"sqlite:///{shop.path}")
    await aa.Inbox(store).approve(asked.id, reviewer="eve")
    await store.aclose()

    hub, user, store = await shop.open()
    end = await user.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=lambda e: "reason" in e.event_data, timeout=30
    )
    assert (end.event_data["reason"], shop.paid) == ("sequence_complete", [5])
    await hub.close()
    await store.aclose()


async def test_a_denied_call_is_read_by_the_model(tmp_path: Path) -> None:
    """After a denial the round goes on without the call, and nothing is paid."""
    shop = Shop(tmp_path / "shop.db")
    hub, user, store = await shop.open()
    graph = TransitionGraph.sequence([user.agent_id, hub.find_agent_id("till") or ""])
    channel = await user.open(type="workflow", target="till", knobs={"graph": graph.to_dict()})
    await channel.send("Pay five.")
    [asked] = await _waiting(store)
    till = hub
    await aa.Inbox(store).deny(asked.id, reviewer="eve", reason="no")
    async with asyncio.timeout(120):
        while not (rows := await store.read(lambda tx: tx.select("turns", {"attempt": 2}))):
            await asyncio.sleep(0.01)
    assert rows
    assert shop.paid == []
    await till.close()
    await store.aclose()
