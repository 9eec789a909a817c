"""One tool that cannot be exported or imported costs no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from agent_adapter.core.errors import IntegrationError, ToolDefinitionError
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec

OnError = Literal["skip", "raise"]
"""Leave out a tool that fails, with a warning that names it, or raise its error."""

T = TypeVar("T")
N = TypeVar("N")

log = logging.getLogger("agent_adapter.integrations")


def exported(
    target: str,
    registry: ToolRegistry,
    export: Callable[[ToolSpec], N],
    on_error: OnError = "skip",
) -> list[N]:
    """The native tools of what `registry` exports to `target`, in order."""
    return each(
        registry.for_target(target),
        export,
        f"exported to {target}",
        named=lambda spec: spec.name,
        on_error=on_error,
    )


def sent(
    provider: str,
    specs: Iterable[ToolSpec],
    make: Callable[[ToolSpec], N],
    on_error: OnError = "skip",
) -> list[N]:
    """The tools of a request to `provider`, in order."""
    named = f"sent to {provider}"
    return each(specs, make, named, named=lambda spec: spec.name, on_error=on_error)


def each(
    items: Iterable[T],
    make: Callable[[T], N],
    what: str,
    *,
    named: Callable[[T], str],
    on_error: OnError = "skip",
    passing: type[Exception] = IntegrationError,
) -> list[N]:
    """What `make` gives for each of `items`; with `"skip"` one that fails is left out and logged.

    `passing` is always raised: it says that the framework is not usable, whatever the tool.
    """
    if on_error not in ("skip", "raise"):
        raise ValueError(f"on_error is 'skip' or 'raise', not {on_error!r}")
    made: list[N] = []
    for item in items:
        try:
            made.append(make(item))
        except passing:
            raise
        except Exception as exc:
            if on_error == "raise":
                raise
            log.warning("the tool %r is not %s: %s", named(item), what, reason_of(exc))
    return made


def name_of(native: Any) -> str:
    """What a framework calls its tool, for a person."""
    listed = native[-1] if isinstance(native, tuple) and native else native
    name = getattr(listed, "name", None)
    return name if isinstance(name, str) and name else type(listed).__name__


def reason_of(error: Any) -> str:
    """Why a tool failed, in a line; an error of a framework's own with its class."""
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, ToolDefinitionError) else f"{type(error).__name__}: {text}"
