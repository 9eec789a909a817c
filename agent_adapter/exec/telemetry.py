"""A watched call: its events, and an OpenTelemetry span by the GenAI conventions."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from opentelemetry import trace

from agent_adapter.core.context import ToolContext
from agent_adapter.core.events import CallFinished, CallStarted, ToolEmitted
from agent_adapter.exec import record
from agent_adapter.exec.call import Call
from agent_adapter.exec.events import provider_in_use, traced


async def watch(call: Call, steps: Awaitable[Any]) -> Any:
    """Run `steps` with events of its start and end, in a span."""
    span = _start(call) if traced() else None
    events = call.runtime.events
    call.ctx.send_events_to(lambda event, by: _emitted(call, event, by))
    ids = (call.spec.name, call.ctx.call_id, call.run_id)
    events.emit(CallStarted(*ids, call.call_key))
    begun = time.perf_counter()
    error: BaseException | None = None
    try:
        with _inside(span):
            return await steps
    except BaseException as exc:
        error = exc
        raise
    finally:
        seconds = time.perf_counter() - begun
        ending = record.ending_of(call, error)
        kind = None if error is None else getattr(error, "kind", type(error).__name__)
        events.emit(CallFinished(*ids, call.call_key, ending, seconds, kind))
        if span is not None:
            _finish(span, error)


def _emitted(call: Call, event: Any, by: ToolContext) -> None:
    ids = (call.spec.name, by.call_id, by.run_id, call.call_key)
    call.runtime.events.emit(ToolEmitted(*ids, event=event))


def _start(call: Call) -> Any:
    """An open span for the call."""
    tracer = trace.get_tracer("agent_adapter", tracer_provider=provider_in_use())
    return tracer.start_span(
        f"execute_tool {call.spec.name}",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.spec.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.ctx.call_id or "",
            "agent_adapter.run.id": call.run_id,
            "agent_adapter.effects": call.spec.effects,
        },
    )


def _inside(span: Any) -> AbstractContextManager[Any]:
    """Make the span the parent of the call's own spans; error texts are not recorded here."""
    if span is None:
        return nullcontext()
    return trace.use_span(span, record_exception=False, set_status_on_exception=False)


def _finish(span: Any, error: BaseException | None) -> None:
    """Close the span; of an error only its kind is written, never its text."""
    if error is not None:
        kind = getattr(error, "kind", type(error).__name__)
        span.set_attribute("error.type", kind)
        span.set_status(trace.StatusCode.ERROR)
    span.end()
