"""A channel of any type whose round ends in some way, in a process that dies at some write."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agent_adapter as aa
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.network.clients.hub_client import HubClient
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.local import LocalLink
from agent_adapter.network.turns.causes import Retries
from agent_adapter.store import approvals, doubt, open_store
from agent_adapter.store.base import Transaction
from agent_adapter.store.ledger import payload
from tests.network._loop_process import KillingStore
from tests.network.test_dead_ends import StopAdapter

TYPES = ("consulting", "conversation", "discussion", "workflow", "custom")
ENDS = ("ok", "silent", "failed", "parked")
_OPEN = ["due", "running", "parked", "silent"]
_AT_ONCE = Retries(usual=(0.0, 0.0, 0.0), outage=(0.0, 0.0, 0.0))


class Walk:
    """The user, the worker, and what the worker has done outside: lines of a file."""

    def __init__(self, effects: Path, end: str) -> None:
        self._effects = effects
        self._end = end
        self._rounds = 0
        registry = aa.ToolRegistry()

        @registry.tool(confirm=True, effects="write")
        def refund(order: str) -> str:
            """Refund an order: a line of the file, on the disk."""
            with effects.open("a") as file:
                file.write(f"{order}\n")
                file.flush()
                os.fsync(file.fileno())
            return "done"

        self._tool = registry.get("refund")

    async def _work(self, turn: Any) -> str | None:
        """One round; the first of a process ends as it was said."""
        self._rounds += 1
        if self._end == "parked":
            return str(await turn.call(self._tool, order="A1"))
        if self._rounds == 1 and self._end == "silent":
            return None
        if self._rounds == 1 and self._end == "failed":
            raise ValueError("the model is away")
        return "done"

    async def join(self, hub: Hub) -> Any:
        """Register both, as a program does at each start; the worker."""
        hub.register_adapter(StopAdapter())
        client = HubClient(LocalLink(hub), hub=hub)
        await client.register_human(Passport(name="user", kind="human"))
        return await client.register(self._work, Passport(name="worker"), attach_plugin=False)

    async def begin(self, hub: Hub, type: str) -> str:
        """The id of the channel, the one that is there or a new one, with the user's message."""
        ids = hub.name_to_id_map()
        user, worker = ids["user"], ids["worker"]
        there = [item for item in await hub.list_channels() if item.state.value != "pending"]
        if there:
            metadata = there[0]
        else:
            graph = TransitionGraph.sequence([user, worker])
            metadata = await hub.create_channel(
                creator_id=user,
                manifest_type=type,
                participants=[worker],
                knobs={"graph": graph.to_dict()} if type == "workflow" else {},
            )
        if not metadata.is_terminal():
            said = {"text": "go"}
            await hub.post_envelope(
                Envelope(metadata.channel_id, user, None, EV_TEXT, said, idempotency_key="go")
            )
        return metadata.channel_id

    async def ask_again(self, hub: Hub, channel_id: str) -> None:
        """Speak once more, where silence was an answer and nobody's turn it is."""
        where = {"channel_id": channel_id, "state in": _OPEN}
        if not await hub.store.read(lambda tx: tx.count("turns", where)):
            user = hub.name_to_id_map()["user"]
            await hub.post_envelope(Envelope(channel_id, user, None, EV_TEXT, {"text": "well?"}))

    def lines(self) -> list[str]:
        """What the worker has done outside."""
        return self._effects.read_text().splitlines()

    async def decide(self, hub: Hub) -> None:
        """Allow what waits for a person, and say of each doubt whether it happened."""
        for row in await hub.store.read(lambda tx: tx.select("approvals", {"state": "pending"})):
            await hub.store.write(_allowing(row["id"]))
        for row in await hub.store.read(doubt.in_doubt):
            order = await hub.store.read(lambda tx, row=row: _order(tx, row))
            happened = order in self.lines()
            result = ("json", json.dumps("done").encode()) if happened else None
            await hub.store.write(_resolving(row["call_key"], happened, result))


async def opened(store: Any) -> Hub:
    """The hub of a store; nothing but its rounds moves it."""
    return await Hub.open(
        store,
        approval=DeferredApproval(store),
        retries=_AT_ONCE,
        ttl_sweep_interval=0,
        expectation_sweep_interval=0,
    )


def killed_at(path: str, effects: str, type: str, end: str, fail_at: int, *, applied: bool) -> None:
    """Live until the nth write, and die there, before it or when it is durable."""

    async def run() -> None:
        inner = open_store(path)
        store = KillingStore(inner, fail_at=fail_at, applied=applied)
        hub = await opened(store)
        walk = Walk(Path(effects), end)
        await walk.join(hub)
        await walk.begin(hub, type)
        for _ in range(3):
            await hub.idle()
            with contextlib.suppress(aa.AgentAdapterError):
                await hub.poll()
        os._exit(0)  # as a program that ends without a word

    asyncio.run(run())


def dead_ends(tx: Transaction) -> list[str]:
    """Channels in which nobody can go on, or somebody waits and no record says so."""
    found = []
    for channel in tx.select("channels", {}):
        id, state = channel["channel_id"], channel["state"]
        told = [row["kind"] for row in tx.select("audit", {"channel_id": id})]
        turns = tx.select("turns", {"channel_id": id, "state in": _OPEN})
        if state == "pending":
            if not tx.select("expectations", {"channel_id": id, "fired_at": None}):
                found.append(f"{id}: an invitation without a limit")
        elif state != "active":
            if not channel["close_reason"] or f"channel_{state}" not in told:
                found.append(f"{id}: {state} without a reason, or untold")
        elif channel["expected"] not in {None, *(turn["agent_id"] for turn in turns)}:
            found.append(f"{id}: {channel['expected']} is expected and has no turn")
        found += [f"{id}: untold: {what}" for what in _owed(tx, turns) if what not in told]
    return found


def _owed(tx: Transaction, turns: list[dict[str, Any]]) -> list[str]:
    """The records that must be there for turns that stand still."""
    owed = []
    for turn in turns:
        if turn["state"] == "silent":
            owed.append("turn_silent")
        if turn["state"] == "parked":
            owed.append("turn_parked")
            if not tx.select("turn_waits", {"turn_id": turn["turn_id"]}):
                owed.append("what it waits for")
        if turn["fails"]:
            owed.append("turn_failed")
    return owed


def _order(tx: Transaction, row: dict[str, Any]) -> str:
    return str(json.loads(payload(tx, row["arguments"]) or b"{}")["order"])


def _allowing(id: str) -> Callable[[Transaction], Any]:
    return lambda tx: approvals.decide(tx, id, verdict="approved", reviewer="eve")


def _resolving(call_key: str, happened: bool, result: Any) -> Callable[[Transaction], Any]:
    return lambda tx: doubt.resolve(tx, call_key, reviewer="ana", happened=happened, result=result)
