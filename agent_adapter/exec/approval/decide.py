"""Step 5: ask a person where one must be asked, once, about exactly the call that will run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from agent_adapter.core.errors import ApprovalDenied, ApprovalPending, ToolInDoubt
from agent_adapter.core.events import ApprovalDecided, ApprovalRequested
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec import hooks, taint
from agent_adapter.exec.approval.request import counts, request_of
from agent_adapter.exec.approval.signing import same_arguments
from agent_adapter.exec.call import Call
from agent_adapter.exec.call_attributes import call_attributes
from agent_adapter.exec.masking import has_mask, unmasked
from agent_adapter.exec.threads import pool
from agent_adapter.store import approvals
from agent_adapter.store.approvals import Take

__all__ = [
    "CONFIRM_SECONDS",
    "Question",
    "accept",
    "agree_to_repeat",
    "answer_of",
    "apply_decision",
    "approve",
    "ask",
    "confirm_reason",
    "provided_decision",
]

CONFIRM_SECONDS = 2.0
"""How long a confirm rule may think before it counts as yes."""


class Question:
    """A question being asked; its yes is good for one call, however many wait for it."""

    __slots__ = ("_used", "answer")

    def __init__(self, port: ApprovalPort, request: ApprovalRequest) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Task[ApprovalDecision] = loop.create_task(answer_of(port, request))
        self._used = False

    def use(self) -> bool:
        """Whether this is the first call to use the answer."""
        first, self._used = not self._used, True
        return first


async def confirm_reason(call: Call) -> str | None:
    """Why a person must be asked about this call; `None` when nobody must. Runs the rule once."""
    rule = call.spec.confirm
    if rule is False:
        return None
    if rule is True:
        return "this tool always asks"
    if rule == "tainted":
        return await _tainted(call)
    return None if await _rule_says_no(call, rule) else "its confirm rule asks"


async def approve(call: Call, reason: str) -> None:
    """Return when the call may run; raises `ApprovalDenied` or `ApprovalPending` otherwise."""
    decision = provided_decision(call)
    if decision is None:
        decision = await ask(call, call.executor.approval, reason)
    elif call.decision is None:
        call.earlier = ()  # whoever decided this was not shown them
    await accept(call, decision)


async def apply_decision(call: Call) -> None:
    """Bind a decision that came with a call nobody had to be asked about: a no is a no."""
    decision = provided_decision(call)
    if decision is not None:
        await accept(call, decision)


def provided_decision(call: Call) -> ApprovalDecision | None:
    """The decision that came with the call: from its gate, or put there by `bind_context`."""
    if call.decision is not None:
        return call.decision
    decision = call.ctx.approval
    return decision if counts(decision, call) else None


async def ask(
    call: Call, port: ApprovalPort | None, reason: str, *, edits_allowed: bool = True
) -> ApprovalDecision:
    """What the port says; no port, an exception and anything but a decision are a denial."""
    if port is None:
        return ApprovalDecision.deny(reason=f"{reason}, and there is nobody to ask")
    kept_in = getattr(port, "store", None)
    call.records = kept_in if kept_in is not call.executor.store else None
    labels = await taint.labels(call)
    request = request_of(call, reason, taint=labels, edits_allowed=edits_allowed)
    ids = (call.spec.name, call.ctx.call_id, call.run_id, call.call_key)
    call.executor.watchers.emit(ApprovalRequested(*ids, reason))
    while True:
        question = _question(call.executor.asking, port, request)
        decision = await asyncio.shield(question.answer)
        # A yes without a record of its own lets one call run; whoever shared it asks again.
        if not decision.approved or decision.record_id is not None or question.use():
            break
    call.executor.watchers.emit(
        ApprovalDecided(*ids, decision.verdict, decision.reviewer, decision.record_id)
    )
    return decision


async def accept(call: Call, decision: ApprovalDecision, *, edits_allowed: bool = True) -> None:
    """Bind the answer to the call: edits are validated and guarded like any arguments."""
    earlier = frozenset(row["call_key"] for row in call.earlier)
    if decision is call.decision and call.approval is not None and earlier <= call.accepted:
        return  # bound by the call's gate, or by the record it is resumed from
    if decision.is_pending:
        raise ApprovalPending(decision.record_id or "", decision.expires_at)
    name = call.spec.name
    if not decision.approved:
        by = f" by {decision.reviewer}" if decision.reviewer else ""
        raise ApprovalDenied(f"{name} was denied{by}: {decision.reason or 'no reason given'}")
    if decision.arguments is not None and not edits_allowed:
        raise ApprovalDenied(f"{name}: the reviewer's edits cannot be applied here")
    call.decision = decision
    if decision.record_id is not None and not call.spec.plain and not call.spec.secrets:
        await _return_to_record(call, decision)
    asked_digest, asked_key = call.digest, call.key()
    if decision.arguments is not None:
        call.rebind(call.spec.validate(unmasked(call, decision.arguments)))
        await hooks.before(call, call.executor.plan(call.spec).before)
        call_attributes(call)
    call.approval = {
        "id": decision.record_id,
        "reviewer": decision.reviewer,
        "reason": decision.reason,
        "digest": call.digest,
        "asked": asked_digest,
    }
    call.accepted |= earlier
    if decision.record_id is not None:
        call.take = Take(
            record_id=decision.record_id,
            tenant=call.ctx.tenant,
            call_key=asked_key,
            principal=call.ctx.principal,
            fingerprint=call.spec.fingerprint,
            digest=asked_digest,
            signature=decision.signature,
        )


async def _return_to_record(call: Call, decision: ApprovalDecision) -> None:
    """Run what was shown: values that change with every validation are taken from the record."""
    tenant = call.ctx.tenant
    record_id = decision.record_id or ""
    records = call.records or call.executor.store
    row = await records.read(lambda tx: approvals.get(tx, record_id, tenant))
    if row is None or row["payload"] is None or row["digest"] == call.digest:
        return
    shown = from_json(row["payload"])
    if has_mask(shown):
        return
    values = call.spec.validate(shown)
    if call.digest_of(values) == row["digest"]:
        call.rebind(values)
        if decision.signature is not None and not same_arguments(row, call.arguments):
            raise ApprovalDenied(
                f"{call.spec.name} was not run: approval {record_id} shows another call than the"
                " one that would run"
            )


async def agree_to_repeat(call: Call, reason: str) -> None:
    """Ask about a write that would add to unclear earlier ones; `ToolInDoubt` without a port."""
    if call.executor.approval is None:
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
    decision = await ask(call, call.executor.approval, reason)
    await accept(call, decision)


def _question(
    asking: dict[str, Question], port: ApprovalPort, request: ApprovalRequest
) -> Question:
    """The question about this binding that is being asked, or a new one."""
    question = asking.get(request.binding)
    if question is None:
        question = asking[request.binding] = Question(port, request)
        question.answer.add_done_callback(lambda _: asking.pop(request.binding, None))
    return question


async def answer_of(port: ApprovalPort, request: ApprovalRequest) -> ApprovalDecision:
    """What the port says; an exception and anything but a decision are a denial."""
    try:
        decision: object = await port.request(request)
    except Exception as exc:
        return ApprovalDecision.deny(reason=f"the approval port failed ({type(exc).__name__})")
    if not isinstance(decision, ApprovalDecision):
        kind = type(decision).__name__
        return ApprovalDecision.deny(reason=f"the approval port gave {kind}, not a decision")
    return decision


async def _tainted(call: Call) -> str | None:
    if call.spec.effects == "read" and not call.spec.egress:
        return None
    labels = await taint.labels(call)
    return f"the run has read {', '.join(labels)}" if labels else None


async def _rule_says_no(call: Call, rule: Callable[..., Any]) -> bool:
    """Whether the rule answered exactly `False`; a failure, a delay or any other value asks."""
    try:
        async with asyncio.timeout(CONFIRM_SECONDS):
            if inspect.iscoroutinefunction(rule):
                answer = await rule(call.arguments, call.ctx)
            else:
                arguments = call.arguments
                answer = await pool.run(lambda: rule(arguments, call.ctx))
                if inspect.isawaitable(answer):
                    answer = await answer
    except Exception:
        return False
    return answer is False
