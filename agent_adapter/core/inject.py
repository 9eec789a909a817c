"""Markers for parameters that the library fills in: they never enter a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Depends:
    """`Annotated[T, Depends(provider)]`: `provider` supplies the argument, never the model.

    `provider` takes nothing or the `ToolContext`, and may be a function, a coroutine function or a
    (async) generator function, whose code after `yield` runs when the call has been recorded.
    """

    __slots__ = ("provider",)

    def __init__(self, provider: Callable[..., Any]) -> None:
        self.provider = provider

    def __repr__(self) -> str:
        return f"Depends({getattr(self.provider, '__name__', self.provider)!s})"


class Secret:
    """`Annotated[T, Secret()]`: masked in records, traces and for reviewers."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret()"
