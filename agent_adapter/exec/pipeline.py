"""Steps 7 to 10 of a call: begin, run, guard and record."""

from __future__ import annotations

import logging
from typing import Any

from agent_adapter.core.errors import (
    AgentAdapterError,
    GuardrailBlocked,
    ToolBusy,
    ToolError,
    ToolTimeout,
)
from agent_adapter.core.events import CallReplayed
from agent_adapter.core.injecting import injected_values
from agent_adapter.exec import hooks, record, replay, run, taint
from agent_adapter.exec.approval import decide as approval
from agent_adapter.exec.call import Call
from agent_adapter.exec.plan import Plan
from agent_adapter.exec.replay import Recorded

__all__ = ["perform", "replayed"]

log = logging.getLogger(__name__)

_WHY_AGAIN = {
    "unknown": "the same call ended before and nobody knows whether it happened",
    "repeats": "an earlier call with the same arguments may have happened",
    "diverges": "this attempt goes another way than the one before, whose writes stand",
}


async def perform(call: Call, plan: Plan) -> Any:
    """The call's value, recorded; injected parameters are resolved before the intent."""
    if not call.spec.injected:
        return await _begin_and_run(call, plan)
    if plan.contexts is not None:
        call.injected = dict.fromkeys(plan.contexts, call.ctx)
        return await _begin_and_run(call, plan)
    provided = injected_values(call.spec.injected, call.ctx)
    call.injected = await _provided(call, provided)
    try:
        return await _begin_and_run(call, plan)
    finally:
        await _torn_down(provided)


def replayed(call: Call, found: Recorded) -> Any:
    """The recorded value, with word of it to whoever watches."""
    ctx = call.ctx
    ids = (call.spec.name, ctx.call_id, ctx.run_id, found.row["call_key"])
    call.executor.watchers.emit(CallReplayed(*ids))
    if call.scope is not None and call.scope.replayed is not None:
        call.scope.replayed(call, found.row["call_key"], found.value)
    return found.value


async def _begin_and_run(call: Call, plan: Plan) -> Any:
    if plan.begins or call.take is not None or call.limits is not None:
        found = await _begin(call)
        return await _run_begun(call, plan) if found is None else replayed(call, found)
    return await _run_unbegun(call, plan)


async def _begin(call: Call) -> Recorded | None:
    """The intent is durable, or the recorded end of an earlier begin is here, or it raises."""
    in_flight = call.executor.in_flight
    if call.spec.effects == "write":
        await in_flight.settle_lost()
        call.executor.warn_of_memory()
    begun = await record.begin(call)
    while begun.state in _WHY_AGAIN:
        call.earlier = (begun.row,) if begun.row is not None else begun.rows
        await replay.renew(call)
        await approval.agree_to_repeat(call, _WHY_AGAIN[begun.state])
        begun = await record.begin(call)
    if begun.state == "started":
        call.call_key, call.n = begun.call_key, begun.n
        call.ctx.idempotency_key = begun.call_key
        in_flight.enter(begun.call_key)
        return None
    if begun.row is not None:
        return await replay.settle(call, begun)
    raise replay.refused(call, begun)


async def _run_begun(call: Call, plan: Plan) -> Any:
    """A call whose intent is durable: whatever happens, its outcome is told."""
    value: Any = None
    error: BaseException | None = None
    try:
        late = record.late(call)
        value = await (_marked(call, late) if plan.marks else run.function(call, late))
        value = await _released(call, plan, value)
    except Exception as exc:
        error = exc
    except BaseException as exc:
        record.post_end(call, record.outcome_of(call, error=exc))
        raise
    await record.end(call, record.outcome_of(call, value, error), value)
    if error is not None:
        raise error
    return value


async def _run_unbegun(call: Call, plan: Plan) -> Any:
    """A read or idempotent call: recorded in the background, once it has ended."""
    if call.call_key is not None:
        call.ctx.idempotency_key = call.call_key
        call.executor.in_flight.spend(call)
        call.executor.in_flight.enter(call.call_key)
    # Scalars cannot be changed by the tool, so their record is built when it is written.
    intent = None if plan.flat else call.intent()
    try:
        value = await (_marked(call) if plan.marks else run.function(call))
        if plan.after or plan.marks or call.scope is not None:
            value = await _released(call, plan, value)
    except BaseException as exc:
        record.post_read(call, intent or call.intent(), record.outcome_of(call, error=exc))
        raise
    if intent is None and call.decision is None and call.ctx.try_number == 1:
        record.post_flat_read(call, value)
    else:
        record.post_read(call, intent or call.intent(), record.outcome_of(call, value))
    return value


async def _marked(call: Call, late: run.Late | None = None) -> Any:
    """What an untrusted function gives; what it says where it fails is read by the model too."""
    try:
        return await run.function(call, late)
    except ToolError as exc:
        if not isinstance(exc, (ToolTimeout, ToolBusy)) and not run.names_only(call, exc):
            await taint.mark(call)
        raise


async def _released(call: Call, plan: Plan, value: Any) -> Any:
    """The value as it may be handed out; from here on the call is done."""
    call.done = True
    if plan.marks:
        await taint.mark(call)
    guards = plan.after + tuple(guard.after for guard in call.guards)
    if not guards:
        return value
    try:
        return await hooks.after(call, guards, value)
    except GuardrailBlocked as exc:
        raise record.withheld(exc) from exc


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
