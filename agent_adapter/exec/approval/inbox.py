"""`Inbox`: list and decide the requests that wait for a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.inert import MAX_NAME, short
from agent_adapter.core.logins import bare
from agent_adapter.exec.approval.edits import checked_edit
from agent_adapter.exec.approval.presented import present_row, question_of
from agent_adapter.exec.approval.records import ApprovalRecord, record_of, records_of
from agent_adapter.exec.approval.signing import ReviewerKey
from agent_adapter.store import approvals, people, releasing, timekeeping, withdrawing
from agent_adapter.store.approvals import Refusal, Seen
from agent_adapter.store.base import Row, Store, Transaction
from agent_adapter.store.keys import conversation_key, run_key

__all__ = ["ApprovalRecord", "Inbox", "Verdict", "record_of", "records_of"]

Verdict = Literal["approved", "denied", "answered"]

_LIMITS = {"pending": "decide_by", "approved": "use_by"}


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
            return records_of(tx, rows)

        return await self._store.read(op)

    async def get(self, id: str) -> ApprovalRecord:
        """The record; the error is the same for an unknown record and one of another tenant."""
        tenant = self._tenant
        record = await self._store.read(lambda tx: _shown(tx, id, tenant))
        if record is None:
            raise AgentAdapterError(
                f"no approval {short(id)}; `agent-adapter approvals list` shows all"
            )
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

    async def respond(
        self,
        id: str,
        answer: Any,
        *,
        reviewer: str,
        reason: str | None = None,
        seen: Seen | None = None,
    ) -> ApprovalRecord:
        """Give the call its result in place of a run: `answer`, a JSON value.

        Refused for a request that needs several votes or a signature.
        """
        record = await self.decide(
            id, "answered", reviewer=reviewer, reason=reason, answer=answer, seen=seen
        )
        return _unless_refused(record)

    async def undo(self, id: str, *, reviewer: str) -> ApprovalRecord:
        """Take back the reviewer's own decision while it is held: the request waits again."""
        return _unless_refused(await self.undo_or_refuse(id, reviewer=reviewer))

    async def undo_or_refuse(self, id: str, *, reviewer: str) -> ApprovalRecord | Refusal:
        """The same, or why it is refused; then nothing has changed."""
        tenant = self._tenant

        def op(tx: Transaction) -> ApprovalRecord | Refusal:
            row = approvals.get(tx, id, tenant)
            if row is None:
                return Refusal(reason=f"no approval {short(id)}")
            undone = releasing.undo(tx, row, by=reviewer)
            return undone if isinstance(undone, Refusal) else record_of(tx, undone)

        return await self._store.write(op)

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
        verdict: Verdict,
        *,
        reviewer: str,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        answer: Any = None,
        key: ReviewerKey | None = None,
        seen: Seen | None = None,
        undo_within: float = 0.0,
    ) -> ApprovalRecord | Refusal:
        """Record one reviewer's decision, or return why it is refused; then nothing has changed.

        `key` signs it. With `seen` it counts only for the record as the reviewer saw it. It takes
        effect after `undo_within` seconds, in which it can be undone.
        """
        tenant = self._tenant
        if len(reviewer) > MAX_NAME:
            return Refusal(reason=f"{short(reviewer)}: a name has at most {MAX_NAME} characters")
        row = await self._store.read(lambda tx: approvals.get(tx, id, tenant))
        if row is None:
            return Refusal(reason=f"no approval {short(id)}")
        edited, given = None, _answer_of(id, answer) if verdict == "answered" else None
        if arguments is not None:
            if (refused := _edits_refused(row)) is not None:
                return refused
            edited = _edit_of(row, arguments)

        def op(tx: Transaction) -> ApprovalRecord | Refusal:
            current = approvals.get(tx, id, tenant)
            if current is None:
                return Refusal(reason=f"no approval {short(id)}")
            if (refused := _is_stale(tx, current, seen)) is not None:
                return refused
            # What is voted on and signed: the record as it stands, with this reviewer's edit.
            shown = present_row(tx, current if edited is None else current | {"edited": edited})
            signature, by = None, reviewer
            if key is not None:
                by = people.reviewer_of(tx, by, key.name, key.public)
                signature = key.sign(shown, verdict=verdict, reviewer=by)
            decided = approvals.decide(
                tx,
                id,
                verdict=verdict,
                reviewer=by,
                reason=reason,
                edited=edited,
                tenant=tenant,
                bound=shown.bound.digest,
                labels=shown.situation.labels,
                signature=signature,
                answer=given,
                undo_within=undo_within,
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


def _edits_refused(row: Row) -> Refusal | None:
    if json.loads(row["request"]).get("edits_allowed"):
        return None
    reason = f"approval {row['id']}: the framework that asked cannot apply edits"
    return Refusal(reason=reason, state=row["state"])


def _edit_of(row: Row, arguments: Mapping[str, Any]) -> str:
    """The edit as the record keeps it, checked; `ToolArgsInvalid` says what the tool refuses."""
    try:
        json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise AgentAdapterError(
            f"approval {row['id']}: the edited arguments are not JSON ({exc}); nothing was changed"
        ) from exc
    return json.dumps(checked_edit(question_of(row), arguments))


def _answer_of(id: str, answer: Any) -> str:
    """An answer as the record keeps it."""
    try:
        return json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise AgentAdapterError(
            f"approval {id}: the answer is not JSON ({exc}); nothing was changed"
        ) from exc


def _is_stale(tx: Transaction, stored: Row, seen: Seen | None) -> Refusal | None:
    row = approvals.as_of(tx, stored)
    if seen is None or row["state"] != "pending":
        return None
    shown = present_row(tx, row)
    if (seen.digest, seen.version) == (shown.bound.digest, shown.digest):
        return None
    return Refusal(
        reason=f"approval {row['id']} has changed since it was shown; look at it again",
        state=row["state"],
        stale=True,
    )


def _shown(tx: Transaction, id: str, tenant: str) -> ApprovalRecord | None:
    row = approvals.get(tx, id, tenant)
    return None if row is None else record_of(tx, row)
