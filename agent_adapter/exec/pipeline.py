"""The steps of a call, in order: replay → approve → begin → run → guard → end.

`stages.py` holds what comes before them: limits → validate → guard → attributes → ask.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from agent_adapter.core.context import SERVED
from agent_adapter.core.errors import (
    AgentAdapterError,
    GuardrailBlocked,
    StoreError,
    ToolBusy,
    ToolError,
    ToolInDoubt,
    ToolTimeout,
)
from agent_adapter.core.events import CallReplayed
from agent_adapter.core.injecting import injected_values
from agent_adapter.exec import cache, hooks, large, provenance, record, replay, run, stages, taint
from agent_adapter.exec.approval import decide
from agent_adapter.exec.call import Call
from agent_adapter.exec.replay import Recorded
from agent_adapter.exec.threads import Late
from agent_adapter.store.intents import Intent

log = logging.getLogger(__name__)

_WHY_AGAIN = {
    "unknown": "the same call ended before with unknown outcome",
    "repeats": "an earlier call with the same arguments may have happened",
    "diverges": "this attempt diverges from an earlier one, whose writes stay in effect",
}


async def run_call(call: Call) -> Any:
    """The call's value, recorded.

    The order is a security property: it is fixed here and in `stages`, and not configurable. A
    recorded outcome is returned before a person is asked; an approval is taken in the transaction
    that writes the intent; a result is returned when its outcome is durable.
    """
    spec, ctx, plan = call.spec, call.ctx, call.plan
    if call.values is None:
        await stages.prepare(call, call.given)
    looks_up = plan.looks_up or ctx.attempt > 1 or ctx.reexecutes
    if call.asked or looks_up or call.position_key is not None:
        # Before the approval: a person must not be asked about a call that has already run.
        found = await replay.find(call)
        if found is not None:
            return await replayed(call, found)
    if call.asked and not await decide.approved_before(call):
        await decide.approve(call, call.asked)
    elif ctx.approval is not None and call.decision is None:
        await decide.apply_decision(call)
    if _is_answered(call):
        return await _answered(call)
    if spec.cache is not None:
        checked = plan.marks or plan.sources or _guards(call)
        guard = partial(_guarded, call) if checked else None
        return await cache.shared(call, spec.cache, lambda: _execute(call), guard)
    return await _execute(call)


async def run_bare(call: Call) -> Any:
    """`run_call` for a call of which `Call.is_bare`: every step that has no work is left out.

    A read of scalars is most of what an agent does, and each step costs it some.
    """
    spec = call.spec
    try:
        values = call.values = spec.arguments.validate(spec.name, call.given)
        value = await run.bare(call, values)
    except BaseException as exc:
        if call.entered:
            record.post_read(call, call.intent(), record.outcome_of(call, error=exc))
        raise
    finally:
        # The tool has not seen its context. Without this the two are a cycle, and each call is
        # left to the garbage collector.
        call.ctx.call_ref = SERVED
    encoded = spec.result.encode(value)
    if len(encoded[1]) > call.runtime.max_result_bytes:
        raise await _kept_back(call, None, encoded[1])
    record.post_flat_read(call, value, *encoded)
    return value


async def _execute(call: Call) -> Any:
    """Begin, run, guard and end; injected parameters are resolved before the intent."""
    injected, contexts = call.spec.injected, call.plan.contexts
    if not injected:
        return await _begin_and_run(call)
    if contexts is not None:
        call.injected = dict.fromkeys(contexts, call.ctx)
        return await _begin_and_run(call)
    provided = injected_values(injected, call.ctx)
    call.injected = await _provided(call, provided)
    try:
        return await _begin_and_run(call)
    finally:
        await _torn_down(provided)


async def _begin_and_run(call: Call) -> Any:
    if call.plan.begins or call.take is not None or call.limits is not None:
        found = await _begin(call)
        if _is_answered(call):
            return await _answered(call)
        return await _run_begun(call) if found is None else await replayed(call, found)
    return await _run_unbegun(call)


async def _begin(call: Call) -> Recorded | None:
    """The intent is durable, or the recorded end of an earlier begin is here, or it raises."""
    runtime = call.runtime
    if call.spec.effects == "write":
        await runtime.in_flight.settle_lost()
        if runtime.store_undecided:
            runtime.warn_of_memory()
    begun = await record.begin(call)
    if begun.state == "unfinished" and begun.row is not None:
        await decide.agree_to_go_on(call, begun.row)
        if _is_answered(call):
            return None
        begun = await record.begin(call)
    while begun.state in _WHY_AGAIN:
        call.earlier = (begun.row,) if begun.row is not None else begun.rows
        await replay.renew(call)
        await decide.agree_to_repeat(call, _WHY_AGAIN[begun.state])
        if _is_answered(call):
            return None
        begun = await record.begin(call)
    if begun.state == "started":
        call.call_key, call.n = begun.call_key, begun.n
        call.entry = call.ctx.attempt if begun.entry == 1 and not call.matched else None
        call.ctx.idempotency_key = begun.call_key
        runtime.in_flight.enter(begun.call_key)
        return None
    if begun.row is not None:
        return await replay.settle(call, begun)
    raise replay.refused(call, begun)


def _is_answered(call: Call) -> bool:
    """Whether a person gave the call's result in place of a run."""
    return call.decision is not None and call.decision.verdict == "answered"


async def _answered(call: Call) -> Any:
    """A person's answer, guarded as every result: nothing ran, and nothing is begun."""
    value = await decide.answer_of(call)
    guards = _guards(call)
    return await hooks.after(call, guards, value) if guards else value


async def _run_begun(call: Call) -> Any:
    """A call whose intent is durable: its outcome is recorded whatever happens."""
    value: Any = None
    error: BaseException | None = None
    try:
        late = record.late(call)
        value = await (_marked(call, late) if call.plan.marks else run.function(call, late))
        value = await _guarded(call, value)
    except Exception as exc:
        error = exc
    except BaseException as exc:
        # Cancelled: the caller leaves at once, so the outcome is queued instead of awaited.
        record.post_end(call, record.outcome_of(call, error=exc))
        raise
    outcome = record.outcome_of(call, value, error)
    if outcome.result is not None and len(outcome.result) > call.runtime.max_result_bytes:
        try:
            error = await large.keep_back(call, outcome.result)
        except BaseException as exc:
            record.post_end(call, record.outcome_of(call, error=exc))
            raise
        outcome = record.outcome_of(call, error=error)
    # Durable before the caller gets it: a crash must not make a delivered outcome unknown.
    await record.end(call, outcome, value)
    if error is not None:
        raise error
    return value


async def _run_unbegun(call: Call) -> Any:
    """A read or idempotent call: recorded in the background, once it has ended."""
    plan = call.plan
    if call.call_key is not None:
        call.ctx.idempotency_key = call.call_key
        call.runtime.in_flight.spend(call)
        call.runtime.in_flight.enter(call.call_key)
    # Scalars cannot be changed by the tool, so their record is built when it is written.
    intent = None if plan.flat else call.intent()
    try:
        value = await (_marked(call) if plan.marks else run.function(call))
        if plan.after or plan.marks or plan.sources or call.scope is not None:
            value = await _guarded(call, value)
    except BaseException as exc:
        record.post_read(call, intent or call.intent(), record.outcome_of(call, error=exc))
        raise
    # The hot path: of a read of scalars nothing but the bytes is made here.
    encoded = call.spec.result.encode(value)
    if len(encoded[1]) > call.runtime.max_result_bytes:
        raise await _kept_back(call, intent, encoded[1])
    if intent is None and call.decision is None and call.ctx.try_number == 1:
        record.post_flat_read(call, value, *encoded)
    else:
        outcome = record.outcome_of(call, value, encoded=encoded)
        record.post_read(call, intent or call.intent(), outcome)
    return value


async def _kept_back(call: Call, intent: Intent | None, data: bytes) -> AgentAdapterError:
    """The error that stands for a result which is too large to be kept; it is recorded."""
    call.done = True
    error = await large.keep_back(call, data)
    record.post_read(call, intent or call.intent(), record.outcome_of(call, error=error))
    return error


async def _marked(call: Call, late: Late | None = None) -> Any:
    """The value of an untrusted function; the text of its error taints the run, too."""
    try:
        return await run.function(call, late)
    except ToolError as exc:
        if not isinstance(exc, (ToolTimeout, ToolBusy)) and not run.names_only(call, exc):
            await taint.mark(call)
        raise


async def _guarded(call: Call, value: Any) -> Any:
    """The value after the guards; from here on the call is done.

    Every returned value passes here: fresh, cached or recorded.
    """
    call.done = True
    if call.plan.marks:
        await _mark_released(call)
    guards = _guards(call)
    if guards:
        try:
            value = await hooks.after(call, guards, value)
        except GuardrailBlocked as exc:
            raise record.withheld(exc) from exc
    if call.plan.sources:
        await provenance.trust(call, value)
    return value


def _guards(call: Call) -> tuple[Any, ...]:
    guards, scope = call.plan.after, call.scope
    if scope is not None and scope.guards and call.parent is None:
        guards += tuple(guard.after for guard in scope.guards)
    return guards


async def _mark_released(call: Call) -> None:
    """Label the run before its result is released; a write whose label is lost is in doubt."""
    try:
        await taint.mark(call)
    except StoreError as exc:
        if call.spec.effects != "write":
            raise
        call.done = False
        raise ToolInDoubt(
            f"{call.spec.name} ran, but that its result is untrusted is not recorded:"
            " do not repeat it",
            call_key=call.call_key,
        ) from exc


async def replayed(call: Call, found: Recorded) -> Any:
    """The recorded value, guarded; subscribers and the run scope are notified."""
    key, scope = found.row["call_key"], call.scope
    call.ctx.edited = None
    ids = (call.spec.name, call.ctx.call_id, call.run_id, key)
    call.runtime.events.emit(CallReplayed(*ids))
    value = None
    try:
        value = await _guarded(call, found.value)
    finally:
        if scope is not None and scope.replayed is not None:
            scope.replayed(call, key, value)  # its effects stand, also if its result is withheld
    return value


async def _provided(call: Call, provided: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = await provided.__aenter__()
    except AgentAdapterError:
        raise
    except Exception as exc:
        name = type(exc).__name__
        raise ToolError(f"{call.spec.name}: a dependency failed ({name})") from exc
    return found


async def _torn_down(provided: Any) -> None:
    """Leave the providers; the call has ended, so a failure is only logged."""
    try:
        await provided.__aexit__(None, None, None)
    except Exception:
        log.exception("a dependency failed while it was torn down")
