"""`TurnSpans`: one OpenTelemetry span for each attempt of a turn, around its calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agent_adapter.exec.events import traced, using_provider
from agent_adapter.network.turns.turn_types import StartedTurn

_PARENT = "traceparent"
_propagator = TraceContextTextMapPropagator()


class TurnSpans:
    """Spans by the GenAI conventions, of `provider`, else of the program's own provider.

    A span is linked to the turn whose message it answers; the calls of its tools are inside it.
    """

    def __init__(self, provider: trace.TracerProvider | None) -> None:
        self._provider = provider

    @property
    def enabled(self) -> bool:
        """Whether somebody takes spans."""
        return self._provider is not None or traced()

    @contextmanager
    def around(self, started: StartedTurn) -> Iterator[None]:
        """Run the round of a started turn in a span."""
        tracer = trace.get_tracer("agent_adapter", tracer_provider=self._provider)
        name = started.metadata.names().get(started.agent_id, started.agent_id)
        trigger = started.trigger
        with (
            using_provider(self._provider),
            tracer.start_as_current_span(
                f"invoke_agent {name}",
                attributes=_attributes(started, name),
                links=() if trigger is None else _links(trigger.trace_id),
                record_exception=False,
            ),
        ):
            yield


def note_failure(error: BaseException) -> None:
    """Mark the span of the attempt that failed; of the error only its class is written."""
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(trace.StatusCode.ERROR)


def note_parked(waits_for: int) -> None:
    """Note in the span of an attempt that it waits for that many decisions."""
    trace.get_current_span().add_event("turn_parked", {"agent_adapter.waits_for": waits_for})


def traceparent() -> str | None:
    """What an envelope carries, so that the turn that answers it is linked to the current span."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get(_PARENT)


def _attributes(started: StartedTurn, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.agent.id": started.agent_id,
        "gen_ai.conversation.id": started.channel_id,
        "agent_adapter.turn.id": started.turn_id,
        "agent_adapter.turn.n": started.n,
        "agent_adapter.turn.attempt": started.attempt,
        "ag2.span.type": "agent",
        "ag2.agent.id": started.agent_id,
        "ag2.network.channel_id": started.channel_id,
        "ag2.network.manifest_type": started.metadata.manifest.type,
    }
    if started.trigger is not None:
        found["ag2.network.envelope_id"] = started.trigger.envelope_id
    return found


def _links(traceparent: str | None) -> list[trace.Link]:
    if not traceparent:
        return []
    context = _propagator.extract({_PARENT: traceparent})
    found = trace.get_current_span(context).get_span_context()
    return [trace.Link(found, {"ag2.link.kind": "triggered_by"})] if found.is_valid else []
