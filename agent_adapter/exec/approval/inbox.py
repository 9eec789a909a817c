"""`Inbox`: list and decide the requests that wait for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.logins import bare
from agent_adapter.exec.approval.signing import ReviewerKey
from agent_adapter.store import approvals, people, timekeeping, withdrawing
from agent_adapter.store.approvals import Refusal, Seen
from agent_adapter.store.base import Row, Store, Transaction
from agent_adapter.store.keys import conversation_key, run_key

_LIMITS = {"pending": "decide_by", "approved": "use_by"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One question to a person as it stands; times are seconds since the epoch.

    `arguments` is what will run, whole, secrets masked; `shown` is the same as text in which
    invisible characters are visible. `edited` is what a reviewer put in its place. `digest` and
    `version` identify what a reviewer sees: a decision that carries them counts only while both are
    current. `signed` is true if only a signed decision counts.
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
    digest: str = ""
    version: str = ""
    fingerprint: str = ""
    requester: str | None = None
    effects: str = "write"
    attempt: int = 1
    signed: bool = False
    conversation: str | None = None

    @property
    def seen(self) -> Seen:
        """What a reviewer who looks at this record has seen."""
        return Seen(digest=self.digest, version=self.version)


class Inbox:
    """The approvals of one store, for the people who decide them.

    The reviewer's name comes from the embedding program or its authenticated session, never from
    a request.
    """

    def __init__(self, store: Store, *, tenant: str = "") -> None:
        self._store = store
        self._tenant = tenant

    async def list(
        self,
        state: str | None = "pending",
        *,
        limit: int = 100,
        after: float | None = None,
        newest_first: bool = False,
    ) -> list[ApprovalRecord]:
        """Records in that state (`None`: in any), oldest first or newest first.

        `after` goes on behind the record that was filed at that time.
        """
        where: dict[str, Any] = {"tenant": self._tenant}
        if state is not None:
            where["state"] = state
        if after is not None:
            where["created_at <" if newest_first else "created_at >"] = after

        def op(tx: Transaction) -> list[ApprovalRecord]:
            timed = _LIMITS.get(state or "")
            still = where if timed is None else where | {f"{timed} >=": timekeeping.now(tx)}
            rows = tx.select(
                "approvals", still, order_by="created_at", descending=newest_first, limit=limit
            )
            return [record_of(tx, row) for row in rows]

        return await self._store.read(op)

    async def get(self, id: str) -> ApprovalRecord:
        """The record; the error is the same for an unknown record and one of another tenant."""
        tenant = self._tenant
        record = await self._store.read(lambda tx: _shown(tx, id, tenant))
        if record is None:
            raise AgentAdapterError(f"no approval {id}; `agent-adapter approvals list` shows all")
        return record

    async def approve(
        self,
        id: str,
        *,
        reviewer: str,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        key: ReviewerKey | None = None,
        seen: Seen | None = None,
    ) -> ApprovalRecord:
        """Let the call run, with `arguments` in place of its own where given, signed with `key`."""
        record = await self.decide(
            id,
            "approved",
            reviewer=reviewer,
            reason=reason,
            arguments=arguments,
            key=key,
            seen=seen,
        )
        return _unless_refused(record)

    async def deny(
        self,
        id: str,
        *,
        reviewer: str,
        reason: str | None = None,
        key: ReviewerKey | None = None,
        seen: Seen | None = None,
    ) -> ApprovalRecord:
        """Refuse the call; the same call of the same run is not asked about again."""
        record = await self.decide(
            id, "denied", reviewer=reviewer, reason=reason, key=key, seen=seen
        )
        return _unless_refused(record)

    async def withdraw(
        self, id: str, reason: str, *, reviewer: str | None = None
    ) -> ApprovalRecord:
        """Take back a question, or an approval that no call has used: nothing will run on it.

        With a `reviewer` the same call of the run is not asked about again, as after a denial. A
        program that takes back what nobody waits for any more names none.
        """
        tenant, by = self._tenant, _named(reviewer)

        def op(tx: Transaction) -> ApprovalRecord | Refusal:
            row = withdrawing.withdraw(tx, id, reason=reason, by=by, tenant=tenant)
            return row if isinstance(row, Refusal) else record_of(tx, row)

        return _unless_refused(await self._store.write(op))

    async def withdraw_run(
        self, run_id: str, reason: str, *, reviewer: str | None = None
    ) -> Sequence[str]:
        """Take back every open question of a run and of the calls its tools make; their ids."""
        tenant, by = self._tenant, _named(reviewer)
        key = run_key(tenant, run_id)
        return await self._store.write(
            lambda tx: withdrawing.withdraw_run(tx, key, reason=reason, by=by)
        )

    async def withdraw_conversation(
        self, thread_id: str, reason: str, *, reviewer: str | None = None
    ) -> Sequence[str]:
        """Take back every open question of a conversation, such as a channel; their ids."""
        by = _named(reviewer)
        of_it = {"conversation": conversation_key(self._tenant, thread_id)}
        return await self._store.write(
            lambda tx: withdrawing.withdraw_all(tx, of_it, reason=reason, by=by)
        )

    async def confirm_time(self, *, reviewer: str) -> float:
        """Say that the clock is right after it jumped ahead; by how many seconds it had.

        Approvals are used again, and those whose time has passed by this clock expire.
        """
        by = _named(reviewer) or ""
        return await self._store.write(lambda tx: timekeeping.confirm(tx, by=by))

    async def decide(
        self,
        id: str,
        verdict: Literal["approved", "denied"],
        *,
        reviewer: str,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        key: ReviewerKey | None = None,
        seen: Seen | None = None,
    ) -> ApprovalRecord | Refusal:
        """Record one reviewer's decision, or return why it is refused; then nothing has changed.

        `key` signs it. With `seen` it counts only for the record as the reviewer saw it.
        """
        tenant = self._tenant
        edited = None if arguments is None else _as_json(id, arguments)
        row = await self._store.read(lambda tx: approvals.get(tx, id, tenant))
        if row is None:
            return Refusal(reason=f"no approval {id}")
        if edited is not None and not json.loads(row["request"]).get("edits_allowed"):
            return Refusal(
                reason=f"approval {id}: the framework that asked cannot apply edits",
                state=row["state"],
            )
        signature = None
        if key is not None:
            signer, public, named = key.name, key.public, reviewer
            reviewer = await self._store.read(
                lambda tx: people.reviewer_of(tx, named, signer, public)
            )
            signature = key.sign(row, verdict=verdict, reviewer=reviewer, edited=edited)
            # What was signed is what was read; anything else must not be decided with it.
            seen = seen or Seen(digest=row["digest"], version=approvals.version_of(row))

        def op(tx: Transaction) -> ApprovalRecord | Refusal:
            decided = approvals.decide(
                tx,
                id,
                verdict=verdict,
                reviewer=reviewer,
                reason=reason,
                edited=edited,
                tenant=tenant,
                seen=seen,
                signature=signature,
            )
            return decided if isinstance(decided, Refusal) else record_of(tx, decided)

        return await self._store.write(op)


def _named(reviewer: str | None) -> str | None:
    if reviewer is not None and not bare(reviewer):
        raise AgentAdapterError("a reviewer has a name: give it, or leave `reviewer` out")
    return reviewer


def _unless_refused(record: ApprovalRecord | Refusal) -> ApprovalRecord:
    if isinstance(record, Refusal):
        raise AgentAdapterError(f"{record.reason}; nothing was changed")
    return record


def _as_json(id: str, arguments: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise AgentAdapterError(
            f"approval {id}: the edited arguments are not JSON ({exc}); nothing was changed"
        ) from exc


def _shown(tx: Transaction, id: str, tenant: str) -> ApprovalRecord | None:
    row = approvals.get(tx, id, tenant)
    return None if row is None else record_of(tx, row)


def record_of(tx: Transaction, stored: Row) -> ApprovalRecord:
    """The record that a row of the table of approvals is, as it stands now."""
    row = approvals.as_of(tx, stored)
    seen = json.loads(row["request"])
    same = (
        "id state tool run_id thread_id conversation call_key principal created_at decide_by"
        " decided_at use_by taken_at reviewer reason votes_needed digest fingerprint requester"
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
        version=approvals.version_of(stored),
        effects=seen.get("effects", "write"),
        attempt=seen.get("attempt", 1),
        signed=bool(seen.get("signed", False)),
    )
