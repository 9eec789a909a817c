"""`TurnObserver`: counts the turns and calls of participants as uses of their capabilities."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from agent_adapter.network.events.event import TURN_DONE, TURN_FAILED
from agent_adapter.network.events.reading import read_events
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.hub.observations import Observation, observe_all
from agent_adapter.network.identity import Resume
from agent_adapter.store.base import Row, Transaction

_CURSOR = "observed-until"
_KINDS = frozenset((TURN_DONE, TURN_FAILED))
_PAGE = 200
_FAILED = ("failed", "unknown")


class TurnObserver:
    """Reads the hub's own events behind a cursor in its store, so each turn counts once.

    A turn is a use of the capability that its channel is labelled with (`labels["capability"]`),
    else of the only one that its participant claims. A call is one of the claimed capability that
    has its tool's name. How it ended and how long it took are read from the ledger's rows.
    """

    def __init__(self, service: ChannelService, identities: Identities) -> None:
        self._service = service
        self._identities = identities
        self._seen = 0

    async def run(self) -> None:
        """Count what has happened since the last time; nothing is read where nothing happened."""
        while self._seen != (newest := self._service.feed.newest):
            more, changed = await self._service.write(_count)
            for agent_id in changed:
                await self._identities.reload(agent_id)
            if not more:
                self._seen = newest


def _count(tx: Transaction) -> tuple[bool, list[str]]:
    """Count one page of events; whether there are more, and whose résumé changed."""
    row = tx.get("meta", _CURSOR)
    page = read_events(tx, 0 if row is None else int(row["value"]), _KINDS, _PAGE)
    found: dict[str, list[Observation]] = defaultdict(list)
    for event in page.events:
        turn = tx.get("turns", event.turn_id)
        if turn is not None and turn["state"] in ("done", "failed"):
            claims = _claims(tx, turn["agent_id"])
            found[turn["agent_id"]] += [*_of_turn(tx, turn, claims), *_of_calls(tx, turn, claims)]
    changed = [
        agent_id
        for agent_id, uses in found.items()
        if uses and observe_all(tx, agent_id, {item.task_id: item for item in uses}.values())
    ]
    value = {"value": str(page.position)}
    if row is None:
        tx.insert("meta", {"name": _CURSOR} | value)
    elif row["value"] != value["value"]:
        tx.update("meta", {"name": _CURSOR}, value)
    return page.more, changed


def _claims(tx: Transaction, agent_id: str) -> list[str]:
    rows = tx.select("identities", {"agent_id": agent_id}, limit=1)
    return Resume.from_dict(json.loads(rows[0]["resume"])).claimed_capabilities if rows else []


def _of_turn(tx: Transaction, turn: Row, claims: list[str]) -> Iterator[Observation]:
    channel = tx.get("channels", turn["channel_id"])
    labels = {} if channel is None else json.loads(channel["labels"] or "{}")
    capability = labels.get("capability") or (claims[0] if len(claims) == 1 else None)
    if capability is not None and turn["started_at"] is not None and turn["ended_at"] is not None:
        outcome = "completed" if turn["state"] == "done" else "failed"
        latency = (turn["ended_at"] - turn["started_at"]) * 1000
        yield Observation(str(capability), outcome, max(0.0, latency), turn["turn_id"])


def _of_calls(tx: Transaction, turn: Row, claims: list[str]) -> Iterator[Observation]:
    if not claims:
        return
    for call in tx.select("calls", {"run_id": turn["turn_id"], "state": "done"}):
        if call["tool"] in claims and call["ending"] in ("ok", *_FAILED):
            outcome = "failed" if call["ending"] in _FAILED else "completed"
            latency = max(0.0, (call["finished_at"] or 0) - (call["started_at"] or 0)) * 1000
            yield Observation(call["tool"], outcome, latency, call["call_key"])
