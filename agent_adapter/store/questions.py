"""The row of a question to a person, and the terms on which it is decided."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.types import ApprovalRequest
from agent_adapter.store import timekeeping
from agent_adapter.store.base import Row, Transaction

DECIDE_WITHIN = 259_200.0
"""Seconds to decide an open record: 72 hours, over a weekend."""

USE_WITHIN = 86_400.0
"""Seconds to use an approval that a parked call or `resume` takes: 24 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a record is decided: seconds to decide and to use, votes it needs, caps on open ones.

    `by_others` excludes the principal of the run from deciding; `signed` refuses a decision
    without a signature.
    """

    decide_within: float = DECIDE_WITHIN
    use_within: float = USE_WITHIN
    votes: int = 1
    by_others: bool = False
    signed: bool = False
    per_run: int = 20
    per_principal: int = 200


_UNANSWERED = "edited reviewer reason decided_at use_by taken_at signature released_at answer"


def new_record(tx: Transaction, request: ApprovalRequest, terms: Terms, new_id: str) -> Row:
    """The row of a question that nobody has answered yet."""
    seen: dict[str, Any] = {
        "v": 1,
        "description": request.description,
        "reason": request.reason,
        "effects": request.effects,
        "call_id": request.call_id,
        "attempt": request.attempt,
        "n": request.n,
        "tags": list(request.tags),
        "taint": list(request.taint),
        "earlier": list(request.earlier),
        "accepted": list(request.accepted),
        "doubts": list(request.doubts),
        "edits_allowed": request.edits_allowed,
        "use_within": terms.use_within,
        "by_others": terms.by_others,
        "signed": terms.signed,
        "root_run_id": request.root_run_id,
        "place": request.place,
        "limits": None if request.limits is None else dataclasses.asdict(request.limits),
        "decide_within": terms.decide_within,
        "schema": request.schema,
        "secrets": list(request.secrets),
    }
    if request.irreversible:
        seen["irreversible"] = True
    fields = (
        "tenant call_key run_id thread_id tool principal requester fingerprint binding digest"
        " payload conversation asker root_run_id"
    )
    row: Row = {name: getattr(request, name) for name in fields.split()}
    empty = dict.fromkeys(_UNANSWERED.split())
    row |= empty | {"id": new_id, "state": "pending", "created_at": tx.now}
    row |= {"decide_by": timekeeping.keep(tx).now + terms.decide_within}
    row["votes_needed"] = terms.votes
    row |= {"asked_key": request.call_key, "run_known": int(request.run_is_known)}
    row["payload"] = request.payload.decode()
    row["request"] = json.dumps(seen, separators=(",", ":"))
    return row
