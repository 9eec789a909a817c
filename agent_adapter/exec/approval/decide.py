"""Asks a person, once, about exactly the call that will run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from agent_adapter.core.errors import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalPending,
    ApprovalWithdrawn,
    GuardrailBlocked,
    StoreError,
    ToolArgsInvalid,
    ToolInDoubt,
)
from agent_adapter.core.events import ApprovalDecided, ApprovalRequested
from agent_adapter.core.inert import short, text_of, visible
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec import stages, taint, waiting
from agent_adapter.exec.approval.ports.deferred import decision_of
from agent_adapter.exec.approval.question import Question
from agent_adapter.exec.approval.request import counts, request_of, runs_again, unclear
from agent_adapter.exec.call import UNREAD, Call
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.exec.masking import has_mask, unmasked
from agent_adapter.exec.timing import person_asked
from agent_adapter.store import approvals, denials, ledger, reopening
from agent_adapter.store.approvals import Take
from agent_adapter.store.base import Row, Transaction


async def approve(call: Call, reason: str) -> None:
    """Return when the call may run; raises `ApprovalDenied` or `ApprovalPending` otherwise."""
    decision = provided_decision(call)
    if decision is None:
        decision = await ask(call, call.runtime.approval, reason)
    elif call.decision is None:
        call.earlier = ()  # whoever decided this was not shown them
    await accept(call, decision)


async def apply_decision(call: Call) -> None:
    """Bind a decision that came with a call that needs none; a denial is honoured."""
    decision = provided_decision(call)
    if decision is not None:
        await accept(call, decision)


def provided_decision(call: Call) -> ApprovalDecision | None:
    """The decision that came with the call: from its gate, or put there by `bind_context`."""
    if call.decision is not None:
        return call.decision
    decision = call.ctx.approval
    return decision if decision is not None and counts(decision, call) else None


async def ask(
    call: Call, port: ApprovalPort | None, reason: str, *, edits_allowed: bool = True
) -> ApprovalDecision:
    """The port's decision; no port, an exception and anything but a decision deny."""
    if port is None:
        return ApprovalDecision.unanswered(f"{reason}, and there is nobody to ask")
    kept_in = getattr(port, "store", None)
    runtime = call.runtime
    call.records = kept_in if kept_in is not runtime.store else None
    # A port that keeps its records in the same store looks there itself.
    keeps = kept_in is runtime.store
    refused = None if keeps else await _refused_before(call)
    if refused is not None:
        return refused
    labels = await taint.labels(call)
    request = request_of(call, reason, taint=labels, edits_allowed=edits_allowed)
    ids = (call.spec.name, call.ctx.call_id, call.run_id, call.call_key)
    if runtime.events.subscribers:
        runtime.events.emit(ApprovalRequested(*ids, reason))
    with person_asked(call):
        if not keeps and call.limits is not None and call.limits.max_seconds is not None:
            async with waiting.stands_still(call):
                decision = await _answered(runtime.asking, port, request)
        else:
            decision = await _answered(runtime.asking, port, request)
    if runtime.events.subscribers:
        said = (decision.verdict, decision.reviewer, decision.record_id)
        runtime.events.emit(ApprovalDecided(*ids, *said))
    if decision.verdict == "denied" and decision.lapsed is None and decision.record_id is None:
        await _note(call, request, decision)
    return decision


async def _refused_before(call: Call) -> ApprovalDecision | None:
    """The refusal of this tool with these arguments that sticks in the run."""
    if not call.run_is_known:
        return None
    if call.denial is UNREAD:
        same = call.refusable()
        call.denial = await call.runtime.store.read(lambda tx: approvals.denied_before(tx, *same))
    return None if call.denial is None else decision_of(call.denial)


async def _note(call: Call, request: ApprovalRequest, decision: ApprovalDecision) -> None:
    """Keep a denial whose port keeps none; a store that cannot write changes no answer."""
    if call.run_is_known:
        id = new_secret_id("apr")
        with suppress(StoreError):
            await call.runtime.store.write(lambda tx: denials.note(tx, request, decision, id))


async def accept(call: Call, decision: ApprovalDecision, *, edits_allowed: bool = True) -> None:
    """Bind the answer to the call: edits are validated and guarded like any arguments."""
    earlier = frozenset(row["call_key"] for row in call.earlier)
    if decision is call.decision and call.approval is not None and earlier <= call.accepted:
        return  # bound by the call's gate, or by the record it is resumed from
    if decision.verdict == "answered":
        call.decision = decision
        return
    refuse(call.spec.name, decision)
    if decision.arguments is not None and not edits_allowed:
        raise ApprovalDenied(f"{call.spec.name}: the reviewer's edits cannot be applied here")
    call.decision = decision
    if decision.record_id is not None and not call.spec.plain and not call.spec.secrets:
        await _return_to_record(call, decision)
    # The record is taken for what was asked, whatever the reviewer made of it.
    asked_digest, asked_key = call.digest, call.key()
    if decision.arguments is not None:
        await _edit(call, decision)
        if decision is not call.ctx.approval:  # a framework's own gate tells its model itself
            call.ctx.edited = call.arguments
    call.approval = {
        "id": decision.record_id,
        "reviewer": decision.reviewer,
        "reason": decision.reason,
        "digest": call.digest,
        "asked": asked_digest,
    }
    if earlier:
        call.accepted |= earlier
        call.doubts |= unclear(call.earlier)
    if decision.record_id is not None:
        call.take = Take(
            record_id=decision.record_id,
            tenant=call.ctx.tenant,
            call_key=asked_key,
            principal=call.ctx.principal,
            fingerprint=call.spec.fingerprint,
            digest=asked_digest,
            edited=decision.arguments,
            signature=decision.signature,
        )


async def _edit(call: Call, decision: ApprovalDecision) -> None:
    """Bind a reviewer's arguments; a record whose edit cannot run waits for a person again."""
    given = unmasked(call, decision.arguments or {})
    try:
        await stages.prepare(call, given, ask=False)
        if decision.record_id is not None and call.plan.before:
            _refuse_guarded(call, given)
    except (ToolArgsInvalid, GuardrailBlocked) as exc:
        id, why = decision.record_id, str(exc)
        if id is None:
            raise
        records = call.records or call.runtime.store
        row = await records.write(lambda tx: reopening.reopen(tx, id, why))
        if row is None or row["state"] != "pending":
            raise
        raise ApprovalPending(id, row["decide_by"]) from exc


def _refuse_guarded(call: Call, given: Mapping[str, Any]) -> None:
    """Refuse an edit that a guard has changed: the person who approved it saw another one."""
    if call.digest_of(call.spec.validate(given)) != call.digest:
        raise GuardrailBlocked(f"{call.spec.name}: a guard of the program changes what it says")


def refuse(tool: str, decision: ApprovalDecision) -> None:
    """Raise for a decision that does not let the call run."""
    if decision.is_pending:
        raise ApprovalPending(decision.record_id or "", decision.expires_at)
    if decision.lapsed == "expired":
        raise ApprovalExpired(f"{tool}: {decision.reason or 'its approval expired'}")
    if not decision.approved:
        by = f" by {short(decision.reviewer)}" if decision.reviewer else ""
        why = visible(decision.reason or "no reason given")
        if decision.lapsed == "withdrawn":
            raise ApprovalWithdrawn(f"the question about {tool} was withdrawn{by}: {why}")
        raise ApprovalDenied(f"{tool} was denied{by}: {why}")


async def _return_to_record(call: Call, decision: ApprovalDecision) -> None:
    """Run what was shown: values that change with every validation are taken from the record."""
    tenant = call.ctx.tenant
    record_id = decision.record_id or ""
    records = call.records or call.runtime.store
    row = await records.read(lambda tx: approvals.get(tx, record_id, tenant))
    if row is None or row["payload"] is None or row["digest"] == call.digest:
        return
    shown = from_json(row["payload"])
    if has_mask(shown):
        return
    values = call.spec.validate(shown)
    if call.digest_of(values) == row["digest"]:
        call.rebind(values)
        if decision.signature is not None and text_of(call.arguments) != text_of(shown):
            raise ApprovalDenied(
                f"{call.spec.name} was not run: approval {record_id} shows another call than the"
                " one that would run"
            )


async def approved_before(call: Call) -> bool:
    """Whether the call is unfinished and an approval was used to begin it: that still holds.

    Where approvals must be signed it is asked about again: the signature was for one beginning.
    """
    port, row = call.runtime.approval, call.left
    if row is None or row["ending"] != "suspended" or row["record_id"] is None:
        return False
    if getattr(port, "signers", None) is not None:
        return False
    records = getattr(port, "store", None) or call.runtime.store
    id, tenant = row["record_id"], call.ctx.tenant
    used = await records.read(lambda tx: approvals.get(tx, id, tenant))
    if used is None or used["state"] != "taken" or used["call_key"] != row["call_key"]:
        return False
    if (used["fingerprint"], used["digest"]) != (call.spec.fingerprint, call.digest):
        return False
    await accept(call, decision_of(used))
    call.take = None
    return True


async def answer_of(call: Call) -> Any:
    """A person's answer, which is the call's result in place of a run; noted in its chain, once."""
    decision = call.decision
    id = None if decision is None else decision.record_id
    run_id, key = call.run_id, call.key()
    facts = {"approval": id, "tool": call.spec.name, "digest": call.digest}
    facts["reviewer"] = None if decision is None else decision.reviewer

    def op(tx: Transaction) -> None:
        if id is not None:
            unused = {"id": id, "state": "answered", "taken_at": None}
            if tx.update("approvals", unused, {"taken_at": tx.now}) == 0:
                return
        ledger.append(tx, run_id, "call-answered", key, facts)

    await (call.records or call.runtime.store).write(op)
    return None if decision is None else decision.answer


async def agree_to_go_on(call: Call, row: Row) -> None:
    """Ask about entering an unfinished call again; `ToolInDoubt` without a port."""
    name, key = call.spec.name, row["call_key"]
    reason = f"{name} was left unfinished while a call inside it waited"
    if call.runtime.approval is None:
        raise ToolInDoubt(
            f"{reason}, and there is nobody to ask whether to go on; see what it did, then run"
            f" `agent-adapter ledger resolve {key}`, or declare it with workflow=True",
            call_key=key,
        )
    call.call_key, call.n, call.matched, call.earlier = key, row["n"], True, (row,)
    await accept(call, await ask(call, call.runtime.approval, f"{reason}; {runs_again(name)}"))
    call.accepted -= {key}
    call.going_on, call.earlier = key, ()


async def agree_to_repeat(call: Call, reason: str) -> None:
    """Ask about a write that would add to unclear earlier ones; `ToolInDoubt` without a port."""
    if call.runtime.approval is None:
        first = call.earlier[0]
        unclear = first["ending"] in (None, "unknown")
        way_out = (
            f"see what it did, then run `agent-adapter ledger resolve {first['call_key']}`"
            if unclear
            else f"{first['tool']} ({first['call_key']}) stands: give the executor an approval "
            "port, or begin a new run"
        )
        raise ToolInDoubt(
            f"{call.spec.name}: {reason}, and there is nobody to ask; {way_out}",
            call_key=first["call_key"],
        )
    decision = await ask(call, call.runtime.approval, reason)
    await accept(call, decision)


async def _answered(
    asking: dict[str, Question], port: ApprovalPort, request: ApprovalRequest
) -> ApprovalDecision:
    while True:
        question = _question(asking, port, request)
        decision = await question.answer()
        if decision is None:
            continue
        # An approval without a record lets one call run; the others that waited for it ask again.
        if not decision.approved or decision.record_id is not None or question.use():
            return decision


def _question(
    asking: dict[str, Question], port: ApprovalPort, request: ApprovalRequest
) -> Question:
    """The question about this binding that is being asked, or a new one."""
    binding = request.binding
    with _asking_one:
        question = asking.get(binding)
        if question is not None and not question.gone:
            return question
        asked = asking[binding] = Question(port, request)
    asked.when_answered(lambda: _forget(asking, binding, asked))
    return asked


def _forget(asking: dict[str, Question], binding: str, answered: Question) -> None:
    with _asking_one:
        if asking.get(binding) is answered:
            del asking[binding]


_asking_one = threading.Lock()
"""Calls of several event loops may ask at once."""
