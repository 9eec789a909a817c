"""A feedback loop with effects outside: what a crash must neither lose nor do twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import agent_adapter as aa
from agent_adapter.core.errors import StoreError
from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, EV_TEXT, Envelope
from agent_adapter.flow.graph import (
    AgentTarget,
    ContextEquals,
    FromSpeaker,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from agent_adapter.network.clients.hub_client import HubClient
from agent_adapter.network.hub.hub import Hub
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.local import LocalLink
from agent_adapter.network.workflow_helpers import set_context
from agent_adapter.store import doubt
from agent_adapter.store.ledger import payload

QUIET = {"ttl_sweep_interval": 0, "expectation_sweep_interval": 0}
"""No sweeper: a crash run is about the store alone."""


class Loop:
    """user → drafter ⇄ reviewer, until the reviewer has counted enough drafts.

    `write(line)` is the world outside: each draft writes one line to it. `lines()` reads it back.
    The reviewer's count is an effect on the channel alone; at `rounds` it is content.
    """

    def __init__(
        self, write: Callable[[str], None], lines: Callable[[], list[str]], rounds: int = 3
    ) -> None:
        self._write = write
        self._rounds = rounds
        self.lines = lines
        self.registry = self._tools()

    def _tools(self) -> aa.ToolRegistry:
        registry = aa.ToolRegistry()
        write, rounds = self._write, self._rounds

        @registry.tool(effects="write")
        async def publish(line: str) -> str:
            """Publish a line."""
            write(line)
            return line

        @registry.tool(effects="write")
        async def count(channel: aa.ChannelInject, state: aa.ChannelStateInject) -> int:
            """Count a draft."""
            seen = int(state.context_vars["count"]) + 1
            await set_context(channel, "count", seen)
            if seen == rounds:
                await set_context(channel, "done", True)
            return seen

        return registry

    async def _drafter(self, turn: Any) -> str:
        number = turn.state().turn_count
        return str(await turn.call(self.registry.get("publish"), line=f"draft {number}"))

    async def _reviewer(self, turn: Any) -> str:
        return f"seen {await turn.call(self.registry.get('count'))}"

    async def join(self, hub: Hub) -> HubClient:
        """Register everybody with a hub, as a program does at each start."""
        client = HubClient(LocalLink(hub), hub=hub)
        await client.register_human(Passport(name="user", kind="human"))
        for name, function in (("drafter", self._drafter), ("reviewer", self._reviewer)):
            await client.register(function, Passport(name=name), Resume(), attach_plugin=False)
        return client

    async def begin(self, hub: Hub) -> str:
        """The id of the loop's channel: the one that is there, or a new one, set going."""
        ids = hub.name_to_id_map()
        user, drafter, reviewer = ids["user"], ids["drafter"], ids["reviewer"]
        for metadata in await hub.list_channels():
            if metadata.state.value in ("active", "closed") and not _was_given_up(metadata):
                break
        else:
            graph = _graph(user, drafter, reviewer)
            metadata = await hub.create_channel(
                creator_id=user,
                manifest_type="workflow",
                participants=[drafter, reviewer],
                knobs={"graph": graph.to_dict(), "context_vars": {"count": 0}},
            )
        if not metadata.is_terminal():
            key = {"idempotency_key": "kickoff"}
            said = Envelope(metadata.channel_id, user, None, EV_TEXT, {"text": "go"}, **key)
            await hub.post_envelope(said)
        return metadata.channel_id

    async def settle_doubts(self, hub: Hub) -> int:
        """Say of every write in doubt whether it happened, as a person who looks would."""
        rows = await hub.store.read(doubt.in_doubt)
        for row in rows:
            done = await hub.store.read(lambda tx, row=row: self._look(tx, row))
            result = ("json", json.dumps(done[1]).encode()) if done[0] else None
            await hub.store.write(_resolving(row["call_key"], happened=done[0], result=result))
        return len(rows)

    def _look(self, tx: Any, row: dict[str, Any]) -> tuple[bool, Any]:
        if row["tool"] != "publish":
            return False, None
        line = json.loads(payload(tx, row["arguments"]) or b"{}")["line"]
        return line in self.lines(), line

    def check(self, log: list[Envelope]) -> None:
        """What must hold at the end, whatever happened on the way."""
        ids = Counter(item.envelope_id for item in log)
        assert max(ids.values()) == 1, "an envelope was accepted twice"
        ends = [item.event_data["reason"] for item in log if item.event_type == EV_CHANNEL_CLOSED]
        assert ends == ["approved"]
        said = [item.event_data["body"] for item in log if "body" in item.event_data]
        drafts = [f"draft {2 * number + 1}" for number in range(self._rounds)]
        counts = [f"seen {number + 1}" for number in range(self._rounds)]
        assert said == [text for pair in zip(drafts, counts, strict=True) for text in pair]
        assert Counter(self.lines()) == Counter(drafts), "a write was lost or happened twice"


def _graph(user: str, drafter: str, reviewer: str) -> TransitionGraph:
    return TransitionGraph(
        initial_speaker=user,
        transitions=[
            Transition(ContextEquals("done", True), TerminateTarget("approved")),
            Transition(FromSpeaker(user), AgentTarget(drafter)),
            Transition(FromSpeaker(drafter), AgentTarget(reviewer)),
            Transition(FromSpeaker(reviewer), AgentTarget(drafter)),
        ],
        max_turns=200,
    )


async def live(
    store: Any, loop: Loop, ready: Callable[[], None] = lambda: None, ack_timeout: float = 0.2
) -> str:
    """One process: it opens the hub, joins, goes on, and ends when nothing moves any more."""
    hub = await Hub.open(store, invite_ack_timeout=ack_timeout, **QUIET)
    client = None
    try:
        await loop.settle_doubts(hub)
        client = await loop.join(hub)
        ready()
        channel_id = await loop.begin(hub)
        await still(hub, loop)
        return channel_id
    finally:
        if client is not None:
            await client.close()
        await hub.close()


async def still(hub: Hub, loop: Loop) -> None:
    """Until no turn is due or running; doubts are settled as they come."""
    for _ in range(500):
        await hub.idle()
        with contextlib.suppress(StoreError):
            await hub.poll()
        await hub.idle()
        states = await hub.store.read(_states)
        if "parked" in states:
            with contextlib.suppress(StoreError):
                await loop.settle_doubts(hub)
        elif not states:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the channel does not come to rest")


def _states(tx: Any) -> set[str]:
    where = {"state": "due", "due_at !=": None}
    parked = tx.select("turns", {"state in": ["running", "parked"]})
    return {row["state"] for row in [*tx.select("turns", where), *parked]}


def _was_given_up(metadata: Any) -> bool:
    return metadata.close_reason in ("invite_timeout", "explicit_close")


def _resolving(call_key: str, **answer: Any) -> Callable[[Any], Any]:
    return lambda tx: doubt.resolve(tx, call_key, reviewer="ana", **answer)
