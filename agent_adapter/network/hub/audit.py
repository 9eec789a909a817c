"""The audit log of a hub: what happened to participants and channels."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_adapter.exec.ids import new_id
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.store.base import Operation, Row, Store, Transaction

REGISTERED = "agent_registered"
UNREGISTERED = "agent_unregistered"
RESUME_SET = "resume_set"
RULE_SET = "rule_set"
SKILL_SET = "skill_set"
CREATED = "channel_created"
CLOSED = "channel_closed"
EXPIRED = "channel_expired"
FORKED = "channel_forked"
VIOLATED = "expectation_violated"
TURN_FAILED = "turn_failed"
ALTERED = "channel_altered"

_PAGE = 1000


def write(tx: Transaction, kind: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Add one record in the operation that it describes, and return it.

    The facts `agent_id` and `channel_id` are indexed.
    """
    record = {"at": iso(tx.now), "kind": kind, **facts}
    named = {name: facts.get(name) for name in ("agent_id", "channel_id")}
    row = {"id": new_id("aud"), "at": tx.now, "kind": kind, "payload": json.dumps(record)}
    tx.insert("audit", row | named)
    return record


class AuditLog:
    """The audit log of one hub's store."""

    def __init__(self, run: Callable[[Operation[Any]], Awaitable[Any]], store: Store) -> None:
        self._write = run
        self._store = store

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
