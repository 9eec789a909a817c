"""Records a call in the store: the intent before the function, the outcome after it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from agent_adapter.core.canonical import digest
from agent_adapter.core.errors import (
    AgentAdapterError,
    GuardrailBlocked,
    StoreError,
    ToolError,
    ToolInDoubt,
)
from agent_adapter.core.events import LateOutcome
from agent_adapter.core.result_parts import content_facts
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.call import Call
from agent_adapter.exec.in_flight import InFlightCalls
from agent_adapter.exec.run import NOT_THE_AUTHORS
from agent_adapter.exec.scope import WAITS
from agent_adapter.store import approvals, ledger
from agent_adapter.store.base import Operation, Transaction
from agent_adapter.store.calls import end_call, late_outcome
from agent_adapter.store.intents import Begun, Intent, Outcome, Reserve
from agent_adapter.store.recording import BeginCall, EndCall, RecordCall

Ending = Literal["ok", "no-effect", "unknown", "aborted", "failed", "suspended"]


async def begin(call: Call) -> Begun:
    """Write the intent, take the approval and reserve the limits, all at once."""
    intent, take = call.intent(), call.take
    if take is None and call.once_key is None and not call.matched:
        # Only a record or an earlier begin binds an identity; otherwise the store gives the next.
        intent.call_key = intent.n = None
    if take is not None and call.records is not None:
        # Two stores have no transaction in common: a crash in between loses the approval, never
        # a write.
        refusal = await call.records.write(partial(approvals.take_elsewhere, use=take))
        if refusal is not None:
            return Begun(state="refused", reason=refusal.reason, refusal=refusal)
        take = None
    limits = call.limits
    reserve = Reserve(limits=limits, run_id=call.root_run_id) if limits is not None else None
    scope = call.scope
    if scope is not None and scope.fence is not None:
        # Before the transaction: the fence may ask a remote hub, for which no transaction can wait.
        intent.fence = await scope.fence(call.runtime.store)
    op = BeginCall(intent, take, reserve)
    begun = op.begun
    in_flight, loop, mark = call.runtime.in_flight, asyncio.get_running_loop(), object()
    in_flight.begin(loop, mark, begun, lambda tx: _abandon(tx, begun, intent))
    try:
        return await call.runtime.store.write(op)
    except BaseException:
        # The caller is cancelled, but the operation continues: its call is never entered.
        if in_flight.begun(loop, mark):
            _post(call, lambda tx: _abandon(tx, begun, intent))
        raise
    finally:
        in_flight.begun(loop, mark)


def _abandon(tx: Transaction, begun: list[Begun], intent: Intent) -> None:
    """Abort an intent whose caller was cancelled before it got the result."""
    if not begun or begun[0].state != "started":
        return
    row = tx.get("calls", begun[0].call_key)
    if row is None or row["state"] != "open" or row["owner_id"] != tx.owner_id:
        return
    outcome = Outcome(
        call_key=row["call_key"], run_id=intent.run_id, ending="aborted", error_kind="cancelled"
    )
    end_call(tx, outcome)


def _post(call: Call, op: Operation[Any]) -> bool:
    """Queue `op` while another error is raised; returns whether the store accepted it."""
    try:
        call.runtime.store.post(op)
    except StoreError:
        return False
    return True


def ending_of(call: Call, error: BaseException | None) -> Ending:
    """How the call ended, as far as its effect is known.

    A `ToolError` that the author of this tool raised promises that nothing happened; one that came
    out of another call made inside it promises nothing about this one.
    """
    if error is None or call.done:
        return "ok"
    if not call.entered:
        return "aborted"
    write, promised = call.spec.effects == "write", _promises_nothing_happened(error)
    if call.nested and call.waits is not None and isinstance(error, WAITS):
        return "suspended"  # a call inside it waits: it continues when that has ended
    freely = call.spec.workflow or (call.nested and not write)
    if freely and not promised:
        return "suspended"  # entered again, its calls that ended are handed out
    if not write:
        return "failed"
    return "no-effect" if promised else "unknown"


def _promises_nothing_happened(error: BaseException) -> bool:
    if not isinstance(error, ToolError) or isinstance(error, NOT_THE_AUTHORS):
        return False
    return error.raised_in is None


def outcome_of(
    call: Call,
    value: Any = None,
    error: BaseException | None = None,
    encoded: tuple[str, bytes] | None = None,
) -> Outcome:
    """The outcome for the store; `encoded` is the value's encoding, if it is known."""
    tag, data = ("", None) if error is not None else encoded or call.spec.result.encode(value)
    kind = text = None
    if isinstance(error, AgentAdapterError):
        kind, text = error.kind, str(error)
    elif error is not None and call.done:
        # Cancelled in an after-hook: the function has already run.
        error = withheld(GuardrailBlocked(type(error).__name__))
        kind, text = error.kind, str(error)
    elif error is not None:
        kind, text = "cancelled", type(error).__name__
    return Outcome(
        call_key=call.call_key or "",
        run_id=call.run_id,
        ending=ending_of(call, error),
        tag=tag,
        result=data,
        error_kind=kind,
        error_text=text,
        reserved=call.limits is not None,
        facts=_facts(call) | content_told(tag, value),
    )


async def end(call: Call, outcome: Outcome, value: Any = None) -> None:
    """Return when the outcome is durable; `ToolInDoubt` when it cannot be made so."""
    try:
        await call.runtime.store.write(EndCall(outcome))
    except StoreError as exc:
        post_end(call, outcome)
        raise ToolInDoubt(
            f"{call.spec.name} ran, but its outcome is not recorded: do not repeat it",
            call_key=call.call_key,
            value=value,
        ) from exc


def post_end(call: Call, outcome: Outcome) -> None:
    """Queue the outcome if the caller cannot wait; the store retries until it is written."""
    if not _post(call, EndCall(outcome)):
        call.runtime.in_flight.lose(outcome)


class FlatRead:
    """A call of scalars that has ended well, kept small until it is written.

    It is called with the transaction. Nothing in it refers to the call, so that thousands of
    them in the queue cost the garbage collector little.
    """

    __slots__ = ("_call", "_data", "_facts", "_given", "_in_flight", "_spec", "_tag", "_values")

    def __init__(self, call: Call, tag: str, data: bytes, facts: dict[str, Any]) -> None:
        ctx, run_id, parent = call.ctx, call.run_id, call.parent
        self._in_flight = call.runtime.in_flight
        self._spec = call.spec
        self._given = dict(call.given)
        self._values = call.values or {}
        self._tag = tag
        self._data = data
        self._facts = facts
        self._call: tuple[Any, ...] = (
            call.call_key,
            run_id,
            ctx.thread_id,
            ctx.principal,
            ctx.tenant,
            ctx.call_id,
            ctx.attempt,
            call.n,
            call.cost,
            None if parent is None else parent.key(),
            call.position_key,
            call.conversation,
            None if run_id == ctx.run_id else call.run_name,
        )

    def __call__(self, tx: Transaction) -> None:
        """Write the call."""
        intent = self._intent(self._spec.dump(self._values))
        self._recorded(intent)(tx)

    def fallback(self, tx: Transaction) -> None:
        """Write that the call was made, without its arguments and its value."""
        self._recorded(self._intent(b"{}")).fallback(tx)

    def keys(self) -> set[str]:
        """Its run."""
        return {self._call[1]}

    def _recorded(self, intent: Intent) -> RecordCall:
        outcome = Outcome(
            call_key="",
            run_id=intent.run_id,
            ending="ok",
            tag=self._tag,
            result=self._data,
            facts=self._facts,
        )
        return RecordCall(intent, outcome, lambda: _held(self._in_flight, intent))

    def _intent(self, arguments: bytes) -> Intent:
        call_key, run_id, thread_id, principal, tenant, *more = self._call
        call_id, attempt, n, cost, parent, place, conversation, run_name = more
        return Intent(
            run_id=run_id,
            place=place,
            conversation=conversation,
            run_name=run_name,
            tool=self._spec.name,
            digest=digest(self._given),
            effects=self._spec.effects,
            fingerprint=self._spec.fingerprint,
            arguments=arguments,
            call_key=call_key,
            n=n,
            tenant=tenant,
            thread_id=thread_id,
            principal=principal,
            attempt=attempt,
            call_id=call_id,
            parent_call_key=parent,
            cost=cost,
        )


def post_flat_read(call: Call, value: Any, tag: str, data: bytes) -> None:
    """Record a call of scalars that has ended well, in the background."""
    call.runtime.store.post(FlatRead(call, tag, data, content_told(tag, value)))


def content_told(tag: str, value: Any) -> dict[str, Any]:
    """The entry's facts about media: size and digest; the bytes are stored separately."""
    found = content_facts(value) if tag not in ("json", "") else []
    return {"content": found} if found else {}


def post_read(call: Call, intent: Intent, outcome: Outcome) -> None:
    """Record a call that needed no intent, in the background."""
    if intent.call_key != call.call_key:
        # The tool started a run of its own, which is named after this call.
        intent = dataclasses.replace(intent, call_key=call.call_key, n=call.n)
    begun, in_flight = intent, call.runtime.in_flight
    call.runtime.store.post(RecordCall(begun, outcome, lambda: _held(in_flight, begun)))


def post_shared(call: Call, tag: str, data: bytes) -> None:
    """Record a call that was answered by another one's execution."""
    intent = call.intent()
    outcome = Outcome(
        call_key="", run_id=call.run_id, ending="ok", tag=tag, result=data, facts={"shared": True}
    )
    in_flight = call.runtime.in_flight
    call.runtime.store.post(RecordCall(intent, outcome, lambda: _held(in_flight, intent)))


def _held(in_flight: InFlightCalls, intent: Intent) -> int:
    return in_flight.held(intent.where, intent.tool, intent.digest)


def late(call: Call) -> Any:
    """The report of a worker thread whose caller has given up."""
    loop = asyncio.get_running_loop()

    def report(value: Any, error: BaseException | None) -> None:
        outcome = outcome_of(call, value, error)
        # If the loop is closed, nothing else can end the call.
        abandoned = loop.is_closed()
        _post(call, EndCall(outcome) if abandoned else partial(late_outcome, outcome=outcome))
        ids = (call.spec.name, call.ctx.call_id, call.run_id, call.call_key)
        call.runtime.events.emit(LateOutcome(*ids, outcome.ending))

    return report


def withheld(error: GuardrailBlocked) -> GuardrailBlocked:
    """The call ran and its result is withheld."""
    return GuardrailBlocked(f"the call was done; its result is withheld: {error}")


async def note(call: Call, kind: str, facts: Mapping[str, Any]) -> None:
    """Add an entry about a call under way to its run's chain; durable when it returns."""
    run_id, key = call.run_id, call.call_key
    await call.runtime.store.write(lambda tx: ledger.append(tx, run_id, kind, key, facts))


def _facts(call: Call) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    decision: ApprovalDecision | None = call.decision
    if decision is not None and decision.arguments is not None:
        facts["edited"] = True
    if call.ctx.try_number > 1:
        facts["tries"] = call.ctx.try_number
    return facts
