"""Denials by ports that keep no records: noted, so that they stick as every other does."""

from __future__ import annotations

from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.store import ledger
from agent_adapter.store.approvals import Terms, denied_before, new_record
from agent_adapter.store.base import Row, Transaction


def note(tx: Transaction, request: ApprovalRequest, said: ApprovalDecision, new_id: str) -> None:
    """Keep that the call was denied in its run, once."""
    same = (request.tenant, request.run_id, request.tool, request.digest)
    if denied_before(tx, *same) is not None:
        return
    answer: Row = {"state": "denied", "reviewer": said.reviewer, "reason": said.reason}
    row = new_record(tx, request, Terms(), new_id) | answer | {"decided_at": tx.now}
    tx.insert("approvals", row)
    facts: Row = {"approval": new_id, "tool": request.tool, "digest": request.digest}
    facts |= {"verdict": "denied", "reviewer": said.reviewer, "reason": said.reason}
    ledger.append(tx, request.run_id, "approval-decided", request.call_key, facts)
