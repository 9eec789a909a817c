"""Subscribers to an executor's events, and whether tracing is on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace

log = logging.getLogger(__name__)

_unknown = object()
_provider: ContextVar[trace.TracerProvider | None] = ContextVar("provider", default=None)


@contextmanager
def using_provider(provider: trace.TracerProvider | None) -> Iterator[None]:
    """Make the spans of the calls inside with `provider`; `None` is the program's own."""
    token = _provider.set(provider)
    try:
        yield
    finally:
        _provider.reset(token)


def provider_in_use() -> trace.TracerProvider | None:
    """The provider of `using_provider`; `None` is the program's own."""
    return _provider.get()


def traced() -> bool:
    """Whether an OpenTelemetry provider is configured, or in use around the call."""
    if _provider.get() is not None:
        return True
    # `get_tracer_provider` reads the environment at every call (1.35: 2 us), which a bare call
    # would feel; the private global answers the common case.
    if getattr(trace, "_TRACER_PROVIDER", _unknown) is None:
        return False
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


class Events:
    """The subscribers of one executor; an exception that one raises is logged."""

    __slots__ = ("subscribers",)

    def __init__(self) -> None:
        self.subscribers: tuple[Callable[[Any], None], ...] = ()

    def active(self) -> bool:
        """Whether a call must be watched: there are subscribers, or tracing is on."""
        return bool(self.subscribers) or traced()

    def subscribe(self, subscriber: Callable[[Any], None]) -> Callable[[], None]:
        """Call `subscriber` with every later event; call the result to stop."""
        self.subscribers += (subscriber,)

        def stop() -> None:
            self.subscribers = tuple(s for s in self.subscribers if s is not subscriber)

        return stop

    def emit(self, event: Any) -> None:
        """Call every subscriber."""
        for subscriber in self.subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception("a watcher failed on %r", event)
