"""Operations on approval records: filed, decided and taken, each in one step.

pending ──approve──▶ approved ──take──▶ taken
   │ ├────deny─────▶ denied        └── use_by passed ──▶ expired
   │ └───answer────▶ answered
   └── decide_by passed ──▶ expired

`withdrawing` takes a pending or an approved one back: withdrawn. `releasing` takes a decision back
while it is held: pending again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.inert import one_line, short
from agent_adapter.core.types import ApprovalRequest
from agent_adapter.store import ledger, people, releasing, reopening, timekeeping, votes, waits
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.questions import DECIDE_WITHIN, USE_WITHIN, Terms, new_record
from agent_adapter.store.refusal import Refusal

__all__ = [
    "DECIDE_WITHIN",
    "USE_WITHIN",
    "Refusal",
    "Seen",
    "Take",
    "Terms",
    "as_of",
    "decide",
    "denied_before",
    "expire",
    "file",
    "get",
    "new_record",
    "take",
    "take_elsewhere",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """The one use of an approved record, and what the approval must be bound to.

    `edited` are the reviewer's arguments that will run. With a `signature`, the record must bear
    exactly this one.
    """

    record_id: str
    tenant: str
    call_key: str
    principal: str | None
    fingerprint: str
    digest: str
    edited: Mapping[str, Any] | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a reviewer saw: the digest of what will run, and of everything that was shown."""

    digest: str
    version: str


def get(tx: Transaction, id: str, tenant: str = "") -> Row | None:
    """The record, unless it does not exist or belongs to another tenant."""
    row = tx.get("approvals", id)
    return row if row is not None and row["tenant"] == tenant else None


def as_of(tx: Transaction, row: Row) -> Row:
    """The row with the state that its times give it now; reading writes nothing."""
    limit = {"pending": row["decide_by"], "approved": row["use_by"]}.get(row["state"])
    late = limit is not None and timekeeping.now(tx) > limit
    return row | {"state": "expired"} if late else row


def file(tx: Transaction, request: ApprovalRequest, terms: Terms, new_id: str) -> Row | Refusal:
    """The open record of this call, or its sticking denial, or a new record under `new_id`."""
    known = _same_call(tx, request) or _denied_before(tx, request) or _follows(tx, request)
    if known is not None:
        return known
    refused = _cannot_ask(tx, request, terms)
    if refused is not None:
        return refused
    row = new_record(tx, request, terms, new_id)
    tx.insert("approvals", row)
    facts = {"approval": new_id, "tool": request.tool, "digest": request.digest}
    facts |= {"why": request.reason}
    whose = {"principal": request.principal, "tenant": request.tenant}
    facts |= {name: value for name, value in whose.items() if value}
    ledger.append(tx, request.run_id, "approval-requested", request.call_key, facts)
    return row


def decide(
    tx: Transaction,
    id: str,
    *,
    verdict: str,
    reviewer: str,
    reason: str | None = None,
    edited: str | None = None,
    tenant: str = "",
    bound: str | None = None,
    labels: Sequence[str] = (),
    signature: str | None = None,
    answer: str | None = None,
    undo_within: float = 0.0,
) -> Row | Refusal:
    """Record one reviewer's decision; returns the updated record.

    `verdict` is `approved`, `denied`, or `answered` with the JSON text of the `answer`, which
    becomes the result of the call in place of a run. For `undo_within` seconds the decision is
    held: it can be undone, and nothing goes by it.

    A record that needs several votes counts different people (see `people.person_of`), none of
    them the requester or principal; a denial denies. A vote is on `bound`, the digest of what will
    run: an edit makes another, and votes on the one before do not count for it. `labels` are those
    of the run that the reviewer was shown; one that is new voids the votes given without it.
    """
    key = people.key_of(signature)
    problem = people.problem(tx, reviewer, key)
    row = get(tx, id, tenant)
    if row is None:
        return Refusal(reason=f"no approval {short(id)}")
    if problem is not None:
        return Refusal(reason=problem, state=row["state"])
    row = expire(tx, row)
    refused = _cannot_decide(tx, row, reviewer, signature, verdict)
    if refused is not None:
        return refused
    row = reopening.with_labels(tx, row, labels)
    asked = json.loads(row["request"])
    values: Row = {"reason": reason, "reviewer": reviewer, "signature": signature}
    if edited is not None:
        values["edited"] = edited
    if verdict != "approved":
        values |= {"state": verdict, "decided_at": tx.now, "answer": answer}
    elif votes.count(tx, row, reviewer, reason, bound or row["digest"]) >= row["votes_needed"]:
        use_by = timekeeping.now(tx) + asked["use_within"]
        values |= {"state": "approved", "decided_at": tx.now, "use_by": use_by}
        values["reviewer"] = votes.reviewers(tx, row, bound or row["digest"])
    if "state" in values:
        values["released_at"] = timekeeping.now(tx) + undo_within if undo_within > 0 else None
    tx.update("approvals", {"id": id, "state": "pending"}, values)
    if "state" in values:
        waits.wake(tx, id)
    facts = {"approval": id, "verdict": verdict, "reviewer": reviewer, "reason": reason}
    facts |= {"digest": row["digest"], "bound": bound}
    facts["person"] = people.person_of(tx, reviewer, key)
    edits = {} if edited is None else {"edited": True}
    ledger.append(tx, row["run_id"], "approval-decided", row["call_key"], facts | edits)
    return row | values


def take(tx: Transaction, use: Take) -> Refusal | None:
    """Use the approved record for this call, or return why not. Call it last before the intent."""
    row = get(tx, use.record_id, use.tenant)
    if row is None:
        return Refusal(reason=f"no approval {short(use.record_id)}")
    row = expire(tx, row)
    if row["state"] == "approved":
        why = timekeeping.why_not(timekeeping.moment(tx))
        if why is not None:
            return Refusal(reason=f"approval {row['id']}: {why}", state="approved")
    if row["state"] != "approved":
        return Refusal(reason=_unusable(row), state=row["state"])
    if row["released_at"] is not None and (left := releasing.seconds_held(tx, row)) > 0:
        why = f"approval {row['id']} can still be undone, for {left:.0f} s"
        return Refusal(reason=why, state="pending")
    bound = ("call_key", "principal", "fingerprint")
    differs = [name for name in bound if row[name] != getattr(use, name)]
    if use.signature is not None and row["signature"] != use.signature:
        differs.append("signature")
    if _sorted(row["edited"] and json.loads(row["edited"])) != _sorted(use.edited):
        differs.append("edits")
    if differs or (row["edited"] is None and row["digest"] != use.digest):
        what = ", ".join(differs) or "digest"
        return Refusal(reason=f"approval {use.record_id} was given for another call ({what})")
    tx.update(
        "approvals",
        {"id": use.record_id, "state": "approved"},
        {"state": "taken", "taken_at": tx.now},
    )
    return None


def _sorted(value: Any) -> str:
    """JSON text that is equal for equal values: 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def _unusable(row: Row) -> str:
    by = f" by {short(row['reviewer'])}" if row["state"] == "withdrawn" and row["reviewer"] else ""
    why = f": {one_line(row['reason'])}" if row["state"] == "withdrawn" else ""
    return f"approval {row['id']} is {row['state']}{by}{why}"


def take_elsewhere(tx: Transaction, use: Take) -> Refusal | None:
    """Use the record for a call that is begun in another store."""
    refusal = take(tx, use)
    if refusal is None:
        row = tx.get("approvals", use.record_id)
        run_id = "" if row is None else row["run_id"]
        ledger.append(tx, run_id, "approval-taken", use.call_key, {"approval": use.record_id})
    return refusal


def _cannot_decide(
    tx: Transaction, row: Row, reviewer: str, signature: str | None, verdict: str
) -> Refusal | None:
    id, state = row["id"], row["state"]
    if state != "pending":
        by = f" by {short(row['reviewer'])}" if row["reviewer"] and state != "expired" else ""
        why = f": {one_line(row['reason'])}" if state == "withdrawn" else ""
        return Refusal(reason=f"approval {id} is already {state}{by}{why}", state=state)
    asked = json.loads(row["request"])
    whose = {people.person_of(tx, row[name]) for name in ("principal", "requester")}
    if asked.get("by_others") and people.person_of(tx, reviewer, people.key_of(signature)) in whose:
        return Refusal(
            reason=f"{short(reviewer)} asked for this call and cannot decide it", state=state
        )
    if verdict == "answered" and (asked.get("signed") or row["votes_needed"] > 1):
        what = "a signature" if asked.get("signed") else f"{row['votes_needed']} votes"
        return Refusal(
            reason=f"approval {id} needs {what}, which an answer in place of the call cannot have:"
            " deny it with a text for the model",
            state=state,
        )
    if asked.get("signed") and signature is None:
        return Refusal(
            reason=f"approval {id} counts only with a reviewer's signature: give the reviewer's key"
            " (`agent-adapter approvals approve --key FILE`)",
            state=state,
        )
    return None


def expire(tx: Transaction, row: Row) -> Row:
    """The record as it stands at the store's clock, marked `expired` where its time has passed."""
    limits = {"pending": row["decide_by"], "approved": row["use_by"]}
    limit = limits.get(row["state"])
    if limit is None or timekeeping.keep(tx).now <= limit:
        return row
    tx.update("approvals", {"id": row["id"], "state": row["state"]}, {"state": "expired"})
    facts = {"approval": row["id"], "from": row["state"]}
    ledger.append(tx, row["run_id"], "approval-expired", row["call_key"], facts)
    return row | {"state": "expired"}


def _same_call(tx: Transaction, request: ApprovalRequest) -> Row | None:
    same_key = {"call_key": request.call_key, "tenant": request.tenant}
    standing = ["pending", "approved", "denied", "answered", "withdrawn"]
    for row in tx.select("approvals", same_key | {"state in": standing}):
        same = row["principal"] == request.principal and row["fingerprint"] == request.fingerprint
        # An approval given before the call was known to repeat a write does not cover the repeat.
        shown = set(json.loads(row["request"]).get("earlier", ()))
        if not same or not shown.issuperset(request.earlier):
            continue
        if expire(tx, row)["state"] in ("pending", "approved"):
            return reopening.with_labels(tx, row, request.taint)
        if row["state"] == "answered" or _sticks(row):
            return row
    return None


def _sticks(row: Row) -> bool:
    """Whether a person has decided that the call must not be made, or not be asked about."""
    return row["state"] == "denied" or (row["state"] == "withdrawn" and row["reviewer"] is not None)


def _denied_before(tx: Transaction, request: ApprovalRequest) -> Row | None:
    return denied_before(tx, request.tenant, request.run_id, request.tool, request.digest)


def denied_before(tx: Transaction, tenant: str, run_id: str, tool: str, digest: str) -> Row | None:
    """A person's refusal that sticks for the tool and the arguments in the run, if there is one."""
    same = {"run_id": run_id, "tool": tool, "digest": digest, "tenant": tenant}
    ended = same | {"state in": ("denied", "withdrawn")}
    return next(filter(_sticks, tx.select("approvals", ended)), None)


def _follows(tx: Transaction, request: ApprovalRequest) -> Row | None:
    """An earlier record that this call may use.

    Where a framework cannot pause, the model asks again under a new position. Its call takes the
    oldest approval of the conversation that no call has used; where not even the conversation is
    known, the open record stands for every equal call, and only `resume` uses it.
    """
    same: Row = {"tool": request.tool, "digest": request.digest, "tenant": request.tenant}
    same |= {"fingerprint": request.fingerprint, "principal": request.principal}
    same |= {"asker": request.asker}
    if not request.run_is_known and request.conversation is None:
        unknown = same | {"run_known": 0}
        rows = [
            row
            for state in ("pending", "approved", "answered")
            for row in tx.select("approvals", unknown | {"state": state, "taken_at": None})
            if expire(tx, row)["state"] == state
        ]
        oldest = min(rows, key=lambda row: row["created_at"], default=None)
        return None if oldest is None else reopening.with_labels(tx, oldest, request.taint)
    if request.conversation is None:
        return None
    unused = same | {"conversation": request.conversation, "taken_at": None}
    unused["state in"] = ["approved", "answered"]
    for row in tx.select("approvals", unused, order_by="created_at"):
        if row["call_key"] == row["asked_key"] and _may_adopt(tx, row, request):
            tx.update("approvals", {"id": row["id"]}, {"call_key": request.call_key})
            facts = {"approval": row["id"], "asked": row["asked_key"]}
            ledger.append(tx, request.run_id, "approval-adopted", request.call_key, facts)
            adopted = row | {"call_key": request.call_key}
            return reopening.with_labels(tx, adopted, request.taint)
    return None


def _may_adopt(tx: Transaction, row: Row, request: ApprovalRequest) -> bool:
    """Whether the record is usable still, was shown no less than this call, and its call waits."""
    if expire(tx, row)["state"] not in ("approved", "answered"):
        return False
    maker = tx.get("calls", row["asked_key"])
    if maker is not None and maker["ending"] not in ("suspended", "aborted"):
        return False
    return set(json.loads(row["request"]).get("earlier", ())).issuperset(request.earlier)


def _cannot_ask(tx: Transaction, request: ApprovalRequest, terms: Terms) -> Refusal | None:
    if terms.by_others and request.requester is None:
        return Refusal(reason="a quorum needs to know whose run this is, and nobody is named")
    waiting: Row = {"tenant": request.tenant, "state": "pending"}
    waiting["decide_by >="] = timekeeping.now(tx)
    open_in_run = {"run_id": request.run_id} | waiting
    if tx.count("approvals", open_in_run) >= terms.per_run:
        return Refusal(reason=f"{terms.per_run} approvals of this run already wait for a person")
    theirs = {"principal": request.principal} | waiting
    if tx.count("approvals", theirs) >= terms.per_principal:
        whose = request.principal or "callers without a principal"
        return Refusal(reason=f"{terms.per_principal} approvals of {short(whose)} wait")
    return None
