"""P5: a hub accepts an envelope, in memory and on SQLite, in a short channel and in a long one."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_adapter.store.opening import open_store
from benchmarks.measure import Batch, Sample, in_turns
from benchmarks.row import Row, Skipped

__all__ = ["run"]

SHORT, LONG = 50, 5000
CALLS = 20

Fill = Callable[["Talk", int], Awaitable[None]]
"""Brings a channel to so many envelopes, as quickly as the library allows."""


async def run(folder: Path, rounds: int) -> list[Row | Skipped]:
    """Ours against AG2's hub on the same envelopes, and ours long against ours short."""
    rows: list[Row | Skipped] = []
    for kind, limit in (("memory", rounds), ("SQLite", max(5, rounds // 4))):
        rows += await _on(kind, folder, limit)
    return rows


async def _on(kind: str, folder: Path, rounds: int) -> list[Row | Skipped]:
    url = "memory://" if kind == "memory" else f"sqlite:///{folder / 'hub.db'}"
    store = open_store(url)
    halls = [await _Hall.open("agent_adapter.network", store, _by_talking)]
    missing: list[Row | Skipped] = []
    try:
        halls.append(await _Hall.open("ag2.network", _knowledge(kind, folder), _by_copying))
    except ImportError:
        reason = "not installed: pip install 'agent-adapter[ag2]'"
        missing = [Skipped(id="P5", what=f"accept, {kind}, against AG2", reason=reason)]
    contenders: dict[str, Batch] = {}
    for hall in halls:
        contenders[f"{hall.name}, {SHORT}"] = hall.short
        contenders[f"{hall.name}, {LONG}"] = await hall.long()
    samples = {item.name: item for item in await in_turns(contenders, rounds=rounds, calls=CALLS)}
    for hall in halls:
        await hall.hub.close()
    await store.aclose()
    return [*_rows(kind, samples), *missing]


def _rows(kind: str, samples: dict[str, Sample]) -> list[Row]:
    ours = "agent_adapter"
    rows = [
        Row(
            id="P5",
            what=f"accept, {kind}: the {LONG:,}th envelope against the {SHORT}th",
            ours=samples[f"{ours}, {LONG}"],
            against=samples[f"{ours}, {SHORT}"],
            limit=1.2,
            note="ours against ours: what was said before costs nothing",
        )
    ]
    for length, limit in ((SHORT, 1.0), (LONG, 0.1)):
        if f"ag2, {length}" in samples:
            rows.append(
                Row(
                    id="P5",
                    what=f"accept, {kind}, at {length:,} envelopes, against AG2's hub",
                    ours=samples[f"{ours}, {length}"],
                    against=samples[f"ag2, {length}"],
                    limit=limit,
                    note="AG2 keeps no turns, deadlines or folded state, and syncs no file"
                    if kind == "SQLite"
                    else "",
                )
            )
    return rows


class _Hall:
    """A hub of one library with two people who talk in turns."""

    def __init__(self, library: str, net: Any, hub: Any, people: list[Any], fill: Fill) -> None:
        self.name = library.partition(".")[0]
        self.net = net
        self.hub = hub
        self.people = people
        self._fill = fill

    @classmethod
    async def open(cls, library: str, store: Any, fill: Fill) -> _Hall:
        """A hub without sweepers on that store."""
        net: Any = import_module(library)
        quiet = {"ttl_sweep_interval": 0, "expectation_sweep_interval": 0}
        hub = await net.Hub.open(store, **quiet)
        link = net.LocalLink(hub)
        people = [
            await net.HubClient(link, hub=hub).register_human(
                net.Passport(name=name, kind="human"),
                rule=net.Rule(limits=net.LimitsBlock(inbox=net.InboxBlock(max_pending=10**9))),
            )
            for name in ("ana", "bob")
        ]
        return cls(library, net, hub, people, fill)

    async def short(self, calls: int) -> float:
        """Seconds for `calls` accepts in a new channel that has a few envelopes."""
        talk = await self._talk()
        for _ in range(SHORT):
            await talk.one()
        return await talk.timed(calls)

    async def long(self) -> Batch:
        """The same in one channel that has many, and gets more."""
        talk = await self._talk()
        await self._fill(talk, LONG)
        return talk.timed

    async def _talk(self) -> Talk:
        ids = [person.agent_id for person in self.people]
        graph = self.net.TransitionGraph.round_robin(ids)
        knobs = {"graph": graph.to_dict(), "unbounded": True}
        channel = await self.people[0].open(type="workflow", target=[ids[1]], knobs=knobs)
        return Talk(self, channel.channel_id, ids)


@dataclass
class Talk:
    """One channel, and how many turns were taken in it."""

    hall: _Hall
    channel_id: str
    ids: list[str]
    turns: int = 0

    async def one(self) -> None:
        """The next packet is accepted."""
        sender = self.ids[self.turns % 2]
        data = {
            "routing": {"kind": "text"},
            "context_updates": {"set": {}, "delete": []},
            "body": f"message {self.turns:06}",
        }
        envelope = self.hall.net.Envelope(self.channel_id, sender, None, "ag2.packet", data)
        await self.hall.hub.post_envelope(envelope)
        self.turns += 1

    async def timed(self, calls: int) -> float:
        """Seconds for the next `calls`."""
        began = time.perf_counter()
        for _ in range(calls):
            await self.one()
        return time.perf_counter() - began


async def _by_talking(talk: Talk, length: int) -> None:
    for _ in range(length):
        await talk.one()


async def _by_copying(talk: Talk, length: int) -> None:
    """Write the log's text at once: AG2's hub would take minutes to come there by itself."""
    await talk.one()
    layout: Any = import_module("ag2.network.hub.layout")
    path, store = layout.wal_path(talk.channel_id), talk.hall.hub._store
    line = (await store.read(path)).splitlines()[-1]
    first = json.loads(line)
    copies = (json.dumps(first | {"envelope_id": f"{n:032x}"}) for n in range(length))
    await store.append(path, "\n".join(copies) + "\n")


def _knowledge(kind: str, folder: Path) -> Any:
    knowledge: Any = import_module("ag2.knowledge")
    if kind == "memory":
        return knowledge.MemoryKnowledgeStore()
    return knowledge.SqliteKnowledgeStore(str(folder / "ag2.db"))
