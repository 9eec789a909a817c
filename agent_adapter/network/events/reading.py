"""Reads events from the rows that say what happened: the logs, the audit, the turns, the tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.events.event import (
    ENVELOPE_POSTED,
    EXPECTATION_FIRED,
    TASK_PROGRESS,
    TURN_DONE,
    TURN_DROPPED,
    TURN_DUE,
    TURN_ENDS,
    TURN_STARTED,
    HubEvent,
)
from agent_adapter.store.base import Row, Transaction


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in the order of the stream; the next page begins behind `position`."""

    events: list[HubEvent]
    position: int
    more: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """A column of positions, the kinds of its events (`None`: any), and how a row is read."""

    table: str
    column: str
    kinds: tuple[str, ...] | None
    event: Callable[[Row, int], HubEvent]

    def has(self, kinds: frozenset[str] | None) -> bool:
        """Whether it may have an event of these kinds."""
        if kinds is None:
            return True
        if self.kinds is None:
            return not kinds <= _NOT_AUDITED
        return not kinds.isdisjoint(self.kinds)


def read_events(
    tx: Transaction,
    after: int,
    kinds: frozenset[str] | None = None,
    limit: int = 200,
    tenant: str | None = None,
    before: int | None = None,
) -> EventPage:
    """The events behind `after`, oldest first, out of at most `limit` of each source.

    Those from the position `before` on are left for later: an earlier one may still come.
    `tenant` leaves out what concerns channels and participants of others; `None` is all.
    """
    found: list[tuple[int, HubEvent]] = []
    horizon: int | None = None
    for source in _SOURCES:
        if not source.has(kinds):
            continue
        column = source.column
        where = {f"{column} >": after} | ({} if before is None else {f"{column} <": before})
        rows = tx.select(source.table, where, order_by=column, limit=limit)
        found += [(row[column], source.event(row, row[column])) for row in rows]
        if len(rows) == limit:
            # Beyond its last row this source may have more: the others must not run ahead.
            horizon = rows[-1][column] if horizon is None else min(horizon, rows[-1][column])
    if horizon is not None:
        found = [item for item in found if item[0] <= horizon]
    found.sort(key=lambda item: item[0])
    last = found[-1][0] if found else after
    events = [event for _, event in found if kinds is None or event.kind in kinds]
    if tenant is not None:
        events = _of_tenant(tx, events, tenant)
    return EventPage(events, last if horizon is None else horizon, horizon is not None)


def may_be_audited(kind: str) -> bool:
    """Whether events of that kind are records of the audit log."""
    return kind not in _NOT_AUDITED


def _posted(row: Row, position: int) -> HubEvent:
    body = json.loads(row["body"])
    return HubEvent(
        kind=ENVELOPE_POSTED,
        cursor=str(position),
        at=iso(row["at"]),
        channel_id=row["channel_id"],
        agent_id=row["sender_id"],
        turn_id=row["turn_id"],
        envelope_id=row["envelope_id"],
        task_id=body.get("task_id"),
        payload={"seq": row["seq"], "envelope": body},
    )


def _audited(row: Row, position: int) -> HubEvent:
    record: dict[str, Any] = json.loads(row["payload"])
    ids = {name: record.pop(name, None) for name in _IDS}
    kind = record.pop("kind", row["kind"])
    if kind == "expectation_violated":
        kind = EXPECTATION_FIRED
    elif kind == "task_terminated":
        kind = f"task_{record.get('outcome')}"
    return HubEvent(
        kind=kind,
        cursor=str(position),
        at=str(record.pop("at", None) or iso(row["at"])),
        payload=record,
        **{name: value if isinstance(value, str) else None for name, value in ids.items()},
    )


def _of_turn(kind: str) -> Callable[[Row, int], HubEvent]:
    def event(row: Row, position: int) -> HubEvent:
        payload = {"n": row["n"], "attempt": row["attempt"], "reason": row["reason"]}
        return HubEvent(
            kind=kind,
            cursor=str(position),
            # The row has the time of its latest change only; a position is made of the time.
            at=iso(position / 1_000_000),
            channel_id=row["channel_id"],
            agent_id=row["agent_id"],
            turn_id=row["turn_id"],
            envelope_id=row["trigger"],
            payload=payload,
        )

    return event


def _ended(row: Row, position: int) -> HubEvent:
    kind = TURN_DROPPED if row["state"] == "dropped" else TURN_DONE
    return _of_turn(kind)(row, position)


def _progress(row: Row, position: int) -> HubEvent:
    return HubEvent(
        kind=TASK_PROGRESS,
        cursor=str(position),
        at=iso(row["updated_at"]),
        channel_id=row["channel_id"],
        agent_id=row["owner_id"],
        task_id=row["task_id"],
        payload={"title": row["title"], "state": row["state"], **json.loads(row["payload"])},
    )


_IDS = ("channel_id", "agent_id", "turn_id", "envelope_id", "task_id")
_SOURCES = (
    _Source("envelopes", "event", (ENVELOPE_POSTED,), _posted),
    _Source("turns", "due_event", (TURN_DUE,), _of_turn(TURN_DUE)),
    _Source("turns", "started_event", (TURN_STARTED,), _of_turn(TURN_STARTED)),
    _Source("turns", "ended_event", TURN_ENDS, _ended),
    _Source("tasks", "event", (TASK_PROGRESS,), _progress),
    _Source("audit", "event", None, _audited),
)
_NOT_AUDITED = frozenset(
    kind for source in _SOURCES if source.kinds is not None for kind in source.kinds
)


def _of_tenant(tx: Transaction, events: Iterable[HubEvent], tenant: str) -> list[HubEvent]:
    channels: dict[str, str] = {}
    agents: dict[str, str] = {}
    kept = []
    for event in events:
        if event.channel_id is not None:
            if event.channel_id not in channels:
                row = tx.get("channels", event.channel_id)
                channels[event.channel_id] = "" if row is None else row["tenant"] or ""
            of = channels[event.channel_id]
        elif event.agent_id is not None:
            if event.agent_id not in agents:
                rows = tx.select("identities", {"agent_id": event.agent_id}, limit=1)
                agents[event.agent_id] = rows[0]["tenant"] or "" if rows else ""
            of = agents[event.agent_id]
        else:
            of = ""
        if of == tenant:
            kept.append(event)
    return kept
