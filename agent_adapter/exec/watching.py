"""Whoever watches an executor: subscribers to its events, and OpenTelemetry."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.events import CallFinished, CallStarted, ToolEmitted
from agent_adapter.exec import record, telemetry
from agent_adapter.exec.call import Call

__all__ = ["Watchers"]

log = logging.getLogger(__name__)


class Watchers:
    """The functions that are told every event; one that raises is logged."""

    def __init__(self) -> None:
        self._watchers: tuple[Callable[[Any], None], ...] = ()

    @property
    def active(self) -> bool:
        """Whether anybody watches, so that a call costs nothing more when nobody does."""
        return bool(self._watchers) or telemetry.active()

    def subscribe(self, watcher: Callable[[Any], None]) -> Callable[[], None]:
        """Tell `watcher` every event from now on; call the result to stop."""
        self._watchers += (watcher,)

        def stop() -> None:
            self._watchers = tuple(known for known in self._watchers if known is not watcher)

        return stop

    def emit(self, event: Any) -> None:
        """Tell everybody."""
        for watcher in self._watchers:
            try:
                watcher(event)
            except Exception:
                log.exception("a watcher failed on %r", event)

    async def watch(self, call: Call, steps: Awaitable[Any]) -> Any:
        """What `steps` gives, with its start, its end and a span around it."""
        span = telemetry.start(call) if telemetry.active() else None
        call.ctx.send_events_to(lambda event, by: self._emitted(call, event, by))
        ids = (call.spec.name, call.ctx.call_id, call.run_id)
        self.emit(CallStarted(*ids, call.call_key))
        begun = time.perf_counter()
        error: BaseException | None = None
        try:
            with telemetry.inside(span):
                return await steps
        except BaseException as exc:
            error = exc
            raise
        finally:
            seconds = time.perf_counter() - begun
            ending = record.ending_of(call, error)
            kind = None if error is None else getattr(error, "kind", type(error).__name__)
            self.emit(CallFinished(*ids, call.call_key, ending, seconds, kind))
            if span is not None:
                telemetry.finish(span, error)

    def _emitted(self, call: Call, event: Any, by: ToolContext) -> None:
        ids = (call.spec.name, by.call_id, by.run_id, call.call_key)
        self.emit(ToolEmitted(*ids, event=event))
