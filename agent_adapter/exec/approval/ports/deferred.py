"""`DeferredApproval`: the question waits in a store until a person decides, over restarts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Mapping
from typing import TypeGuard

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.approval.presented import edited_of, would_run
from agent_adapter.exec.approval.request import stamped
from agent_adapter.exec.approval.signing import Signers
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.store import approvals, releasing
from agent_adapter.store.approvals import DECIDE_WITHIN, USE_WITHIN, Refusal, Terms
from agent_adapter.store.base import Operation, Row, Store, Transaction
from agent_adapter.store.watching import ChangeWatch

_FIRST_LOOK = 0.02
_SLOWEST_LOOK = 0.5


class DeferredApproval:
    """Files a record (`apr_…`) and lets a person decide it later, in any process.

    `wait` is how many seconds a call waits for the decision before it is pending.
    `decide_within` and `use_within` are the seconds until an undecided record and an unused
    approval expire. With `require_signed` an approval counts only if one of `reviewers` signed it:
    their names, each with its public key (`ed25519:…`, as `agent-adapter keys create` writes it).
    """

    def __init__(
        self,
        store: Store,
        wait: float = 0,
        *,
        decide_within: float = DECIDE_WITHIN,
        use_within: float = USE_WITHIN,
        require_signed: bool = False,
        reviewers: Mapping[str, str | bytes] | None = None,
    ) -> None:
        self.store = store
        self._wait = wait
        self._terms = Terms(
            decide_within=decide_within, use_within=use_within, signed=require_signed
        )
        self.signers = _signers(require_signed, reviewers, use_within)

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision of this call's record; pending until a person decides."""
        terms, watch = self._terms, ChangeWatch(self.store, {"approvals"})
        row = await self.store.write(
            lambda tx: approvals.file(tx, request, terms, new_secret_id("apr"))
        )
        if not isinstance(row, Refusal):
            row = await self._in_force(row, watch)
        if self.signers is not None and not isinstance(row, Refusal):
            problem = await unsigned(self.store, self.signers, row, request)
            if problem is not None:
                return ApprovalDecision.deny(reason=problem, record_id=row["id"])
        if _is_for_another(row, request):
            # Its run is unknown: an approval cannot find its call again, so `resume` makes it.
            return ApprovalDecision.pending(row["id"], expires_at=row["use_by"])
        return stamped(decision_of(row), request)

    async def _in_force(self, row: Row, watch: ChangeWatch) -> Row:
        """The record once its decision counts, or as it is after the seconds to wait for one."""
        until = time.monotonic() + self._wait
        while True:
            if row["state"] == "pending" and self._wait > 0:
                row = await self._decided(row, until, watch)
            if row["released_at"] is None:
                return row
            row = await released(self.store, row)
            if row["state"] != "pending":
                return row

    async def _decided(self, row: Row, until: float, watch: ChangeWatch) -> Row:
        pause = _FIRST_LOOK
        while row["state"] == "pending" and (left := until - time.monotonic()) > 0:
            await watch.wait(pause, left)
            pause = min(pause * 1.5, _SLOWEST_LOOK)
            found = await self.store.read(_record(row))
            row = row if found is None else found
        return row


async def released(store: Store, row: Row) -> Row:
    """The record once its decision can no longer be undone, or once it was."""
    while row["released_at"] is not None:
        row, left = await store.read(_held(row))
        if left <= 0:
            return row
        await asyncio.sleep(min(left, _SLOWEST_LOOK))
    return row


def _held(row: Row) -> Operation[tuple[Row, float]]:
    def op(tx: Transaction) -> tuple[Row, float]:
        found = approvals.get(tx, row["id"], row["tenant"]) or row
        return found, releasing.seconds_held(tx, found)

    return op


def _is_for_another(row: Row | Refusal, request: ApprovalRequest) -> TypeGuard[Row]:
    """Whether the approval was given to an equal call that only `resume` can find again."""
    if isinstance(row, Refusal):
        return False
    decided = row["state"] in ("approved", "answered")
    return bool(decided and row["call_key"] != request.call_key)


def _signers(
    required: bool, reviewers: Mapping[str, str | bytes] | None, use_within: float
) -> Signers | None:
    if not required:
        if reviewers is not None:
            raise ToolDefinitionError(
                "DeferredApproval(reviewers=…) pins keys: say require_signed=True with it"
            )
        return None
    from agent_adapter.exec.approval.signing import Signers

    return Signers(reviewers or {}, use_within=use_within)


async def unsigned(
    records: Store, signers: Signers, row: Row, request: ApprovalRequest
) -> str | None:
    """Why an approval is not signed, or was signed for something other than this call."""
    if row["state"] == "answered":
        return f"approval {row['id']} was answered in place of the call, and only signed ones count"
    if row["state"] not in ("approved", "taken"):
        return None
    runs = would_run(row, request)
    return await records.read(lambda tx: signers.problem(tx, row, runs))


def decision_of(row: Row | Refusal) -> ApprovalDecision:
    """What a record, or the refusal to file one, says."""
    if isinstance(row, Refusal):
        return ApprovalDecision.unanswered(row.reason)
    known = {"reviewer": row["reviewer"], "reason": row["reason"], "record_id": row["id"]}
    if row["state"] == "denied":
        return ApprovalDecision.deny(**known)
    if row["state"] == "answered":
        if row["answer"] is None:
            return ApprovalDecision.deny(reason="the answer was erased", record_id=row["id"])
        return ApprovalDecision.respond(json.loads(row["answer"]), **known)
    if row["state"] in ("approved", "taken"):
        edited = None if row["edited"] is None else edited_of(row)
        approved = ApprovalDecision.approve(arguments=edited, **known)
        return dataclasses.replace(approved, signature=row["signature"])
    if row["state"] == "expired":
        late = ApprovalDecision.deny(reason=f"approval {row['id']} expired", record_id=row["id"])
        return dataclasses.replace(late, lapsed="expired")
    if row["state"] == "withdrawn":
        return dataclasses.replace(ApprovalDecision.deny(**known), lapsed="withdrawn")
    return ApprovalDecision.pending(row["id"], expires_at=row["decide_by"])


def _record(row: Row) -> Operation[Row | None]:
    def op(tx: Transaction) -> Row | None:
        return approvals.get(tx, row["id"], row["tenant"])

    return op
