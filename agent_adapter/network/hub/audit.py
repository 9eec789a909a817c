"""The audit log of a hub: what happened to participants and channels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from agent_adapter.core.ports import Clock
from agent_adapter.exec.ids import new_id
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.events.listeners import BaseHubListener
from agent_adapter.network.hub.stores import hub_store
from agent_adapter.store.base import Operation, Row, Store, Transaction
from agent_adapter.store.positions import next_position

REGISTERED = "agent_registered"
UNREGISTERED = "agent_unregistered"
RESUME_SET = "resume_set"
RULE_SET = "rule_set"
SKILL_SET = "skill_set"
CREATED = "channel_created"
CLOSED = "channel_closed"
EXPIRED = "channel_expired"
REOPENED = "channel_reopened"
FORKED = "channel_forked"
VIOLATED = "expectation_violated"
TURN_FAILED = "turn_failed"
TURN_PARKED = "turn_parked"
APPROVAL_WAITING = "approval_waiting"
CALL_IN_DOUBT = "call_in_doubt"
TASK_TERMINATED = "task_terminated"
TURN_SILENT = "turn_silent"
TURN_STUCK = "turn_stuck"
ALTERED = "channel_altered"
INBOX_PRESSURE = "inbox_pressure"

AUDIT_KIND_AGENT_REGISTERED = REGISTERED
AUDIT_KIND_AGENT_UNREGISTERED = UNREGISTERED
AUDIT_KIND_CHANNEL_CLOSED = CLOSED
AUDIT_KIND_CHANNEL_CREATED = CREATED
AUDIT_KIND_CHANNEL_EXPIRED = EXPIRED
AUDIT_KIND_EXPECTATION_VIOLATED = VIOLATED
AUDIT_KIND_RESUME_SET = RESUME_SET
AUDIT_KIND_RULE_SET = RULE_SET
AUDIT_KIND_SKILL_SET = SKILL_SET
AUDIT_KIND_TURN_FAILED = TURN_FAILED
AUDIT_KIND_TASK_TERMINATED = TASK_TERMINATED
"""The kinds of records under the names that programs import."""

RESUME_SOURCE_TENANT = "tenant"
RESUME_SOURCE_OBSERVED = "observed"
"""The `source` of a `resume_set` record: the participant itself, or the hub."""

AuditSubscriber = Callable[[dict[str, Any]], Awaitable[None]]
"""Receives the records of an audit log as they are written."""

_PAGE = 1000
_written: Counter[str] = Counter()


class Tails(Protocol):
    """A hub's stream of events, as far as the audit log uses it."""

    def tail(self, callback: AuditSubscriber) -> None:
        """Give every later record to `callback`."""
        ...

    def unregister_listener(self, listener: Any) -> None:
        """Give it no more."""
        ...


def write(tx: Transaction, kind: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Add one record in the operation that it describes, and return it.

    The facts `agent_id` and `channel_id` are indexed.
    """
    record = {"at": iso(tx.now), "kind": kind, **facts}
    named = {name: facts.get(name) for name in ("agent_id", "channel_id")}
    row: Row = {"id": new_id("aud"), "at": tx.now, "kind": kind, "payload": json.dumps(record)}
    tx.insert("audit", row | named | {"event": next_position(tx)})
    _written[tx.owner_id] += len(row["payload"])
    return record


def record_at(tx: Transaction, position: int) -> dict[str, Any] | None:
    """The record at a position of the stream of events; `None` if another row is there."""
    rows = tx.select("audit", {"event": position}, limit=1)
    return json.loads(rows[0]["payload"]) if rows else None


class AuditLog(BaseHubListener):
    """The audit log of a store: what happened to participants and channels.

    A hub writes the records in the operations that they describe. A subclass that overrides the
    methods of a listener can add records of its own (`Hub.replace_audit_log`).
    """

    def __init__(self, store: Any, *, clock: Clock | None = None) -> None:
        found, self._owned = hub_store(store, clock)
        self._store: Store = found
        self._write: Callable[[Operation[Any]], Awaitable[Any]] = found.write
        self._tails: Tails | None = None
        self._waiting: list[AuditSubscriber] = []

    def bind(self, run: Callable[[Operation[Any]], Awaitable[Any]], tails: Tails) -> None:
        """Write through a hub, and give later records to subscribers from its stream."""
        self._write, self._tails = run, tails
        for callback in self._waiting:
            tails.tail(callback)
        self._waiting.clear()

    def subscribe(self, callback: AuditSubscriber) -> None:
        """Give every later record to `callback`; what it raises is logged."""
        if self._tails is None:
            self._waiting.append(callback)
        else:
            self._tails.tail(callback)

    def unsubscribe(self, callback: AuditSubscriber) -> None:
        """Give it no more; an unknown one changes nothing."""
        if self._tails is not None:
            self._tails.unregister_listener(callback)
        elif callback in self._waiting:
            self._waiting.remove(callback)

    @property
    def bytes_written(self) -> int:
        """Bytes of the records that this process has written."""
        return _written[self._store.owner_id]

    async def append(self, record: dict[str, Any]) -> None:
        """Add a record of the program's own; it has a `kind`, and gets its time here."""
        facts = dict(record)
        kind = str(facts.pop("kind", "note"))
        facts.pop("at", None)
        await self._write(lambda tx: write(tx, kind, facts))

    async def read_all(self) -> list[dict[str, Any]]:
        """Every record, oldest first: `{"at", "kind", …}`."""
        found: dict[str, dict[str, Any]] = {}
        since = 0.0
        while True:
            rows = await self._store.read(_page_from(since))
            new = {row["id"]: json.loads(row["payload"]) for row in rows if row["id"] not in found}
            found |= new
            if not new or len(rows) < _PAGE:
                return list(found.values())
            since = rows[-1]["at"]

    async def of_channel(self, channel_id: str, limit: int = _PAGE) -> list[dict[str, Any]]:
        """The newest records about one channel, oldest first."""

        def op(tx: Transaction) -> list[dict[str, Any]]:
            where = {"channel_id": channel_id}
            rows = tx.select("audit", where, order_by="at", descending=True, limit=limit)
            return [json.loads(row["payload"]) for row in reversed(rows)]

        return await self._store.read(op)


def _page_from(since: float) -> Operation[list[Row]]:
    # The last moment of a page is read again: several records may share it.
    return lambda tx: tx.select("audit", {"at >=": since}, order_by="at", limit=_PAGE)
