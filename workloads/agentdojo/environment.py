"""The world that a task's tools act on, bound around one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["bound_environment", "provider_of"]

_ENVIRONMENT: ContextVar[Any] = ContextVar("agentdojo_environment")


@contextmanager
def bound_environment(environment: Any) -> Iterator[None]:
    """Every tool called inside the block acts on `environment`."""
    token = _ENVIRONMENT.set(environment)
    try:
        yield
    finally:
        _ENVIRONMENT.reset(token)


def provider_of(dependency: Any) -> Callable[[], Any]:
    """A provider of what AgentDojo's `dependency` takes from the bound environment."""

    def provide() -> Any:
        try:
            environment = _ENVIRONMENT.get()
        except LookupError:
            raise RuntimeError(
                f"{dependency!r} needs an environment: call the tool inside bound_environment(...)"
            ) from None
        return dependency.extract_dep_from_env(environment)

    return provide
