"""`Inbox`: what waits for a person, and what they say about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.store import approvals
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Row, Store, Transaction

__all__ = ["ApprovalRecord", "Inbox"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One question to a person as it stands; times are seconds since the epoch.

    `arguments` is what will run, whole, secrets masked; `shown` is the same as text in which
    invisible characters are visible. `edited` is what a reviewer put in its place.
    """

    id: str
    state: str
    tool: str
    description: str
    arguments: dict[str, Any]
    shown: str
    edited: dict[str, Any] | None
    why: str
    run_id: str
    thread_id: str | None
    call_id: str
    call_key: str
    principal: str | None
    taint: tuple[str, ...]
    earlier: tuple[str, ...]
    edits_allowed: bool
    created_at: float
    decide_by: float
    decided_at: float | None
    use_by: float | None
    taken_at: float | None
    reviewer: str | None
    reason: str | None
    votes_needed: int


class Inbox:
    """The approvals of one store, for the people who decide them.

    The reviewer's name comes from the embedding program or its authenticated session, never from
    what a caller sends.
    """

    def __init__(self, store: Store, *, tenant: str = "") -> None:
        self._store = store
        self._tenant = tenant

    async def list(
        self, state: str | None = "pending", *, limit: int = 100
    ) -> list[ApprovalRecord]:
        """Records in that state (`None`: in any), oldest first."""
        where: dict[str, Any] = {"tenant": self._tenant}
        if state is not None:
            where["state"] = state
        rows = await self._store.read(
            lambda tx: [
                _as_of(tx, row)
                for row in tx.select("approvals", where, order_by="created_at", limit=limit)
            ]
        )
        return [_record(row) for row in rows if state is None or row["state"] == state]

    async def get(self, id: str) -> ApprovalRecord:
        """The record; an error that does not tell a foreign one from none."""
        tenant = self._tenant
        row = await self._store.read(lambda tx: _shown(tx, id, tenant))
        if row is None:
            raise AgentAdapterError(f"no approval {id}; `agent-adapter approvals list` shows all")
        return _record(row)

    async def approve(
        self,
        id: str,
        *,
        reviewer: str,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> ApprovalRecord:
        """Let the call run, with `arguments` in place of its own where given."""
        edited = None if arguments is None else _as_json(id, arguments)
        if edited is not None and not (await self.get(id)).edits_allowed:
            raise AgentAdapterError(f"approval {id}: the framework that asked cannot apply edits")
        return await self._decide(id, "approved", reviewer, reason, edited)

    async def deny(self, id: str, *, reviewer: str, reason: str | None = None) -> ApprovalRecord:
        """Refuse the call; the same call of the same run is not asked about again."""
        return await self._decide(id, "denied", reviewer, reason, None)

    async def _decide(
        self, id: str, verdict: str, reviewer: str, reason: str | None, edited: str | None
    ) -> ApprovalRecord:
        tenant = self._tenant
        row = await self._store.write(
            lambda tx: approvals.decide(
                tx,
                id,
                verdict=verdict,
                reviewer=reviewer,
                reason=reason,
                edited=edited,
                tenant=tenant,
            )
        )
        if isinstance(row, Refusal):
            raise AgentAdapterError(f"{row.reason}; nothing was changed")
        return _record(row)


def _as_json(id: str, arguments: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise AgentAdapterError(
            f"approval {id}: the edited arguments are not JSON ({exc}); nothing was changed"
        ) from exc


def _shown(tx: Transaction, id: str, tenant: str) -> Row | None:
    row = approvals.get(tx, id, tenant)
    return None if row is None else _as_of(tx, row)


def _as_of(tx: Transaction, row: Row) -> Row:
    """The row with the state that its times give it now; reading writes nothing."""
    limit = {"pending": row["decide_by"], "approved": row["use_by"]}.get(row["state"])
    return row | {"state": "expired"} if limit is not None and tx.now > limit else row


def _record(row: Row) -> ApprovalRecord:
    seen = json.loads(row["request"])
    same = (
        "id state tool run_id thread_id call_key principal created_at decide_by decided_at use_by"
        " taken_at reviewer reason votes_needed"
    )
    return ApprovalRecord(
        **{name: row[name] for name in same.split()},
        description=seen.get("description", ""),
        arguments=seen.get("arguments", {}),
        shown=seen.get("shown", ""),
        edited=json.loads(row["edited"]) if row["edited"] is not None else None,
        why=seen.get("reason", ""),
        call_id=seen.get("call_id", ""),
        taint=tuple(seen.get("taint", ())),
        earlier=tuple(seen.get("earlier", ())),
        edits_allowed=bool(seen.get("edits_allowed", False)),
    )
