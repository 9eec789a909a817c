"""Markers for parameters: what is injected, what is masked, and what decides where things go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_adapter.core.errors import ToolDefinitionError


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
    """`Annotated[T, Secret()]`: masked in records, traces and for reviewers.

    It may stand inside of a parameter's type: on a field of a model, dataclass, TypedDict or
    NamedTuple, or on the members of a list or dictionary.
    """

    __slots__ = ()

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """The schema of the type, which says that its value is never shown."""
        return {**handler(core_schema), "writeOnly": True}

    def __repr__(self) -> str:
        return "Secret()"


class Sink:
    """`Annotated[str, Sink("account")]`: the value decides where something goes.

    `confirm="provenance"` compares it by its `kind`: `recipient`, `account`, `url`, `host`, `path`
    and `command` have forms of their own, the values of any other kind are compared word by word.
    The mark may stand inside lists, dictionaries and models. Raises `ToolDefinitionError` for a
    kind that is no name.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = checked_kind(kind, "Sink")

    def __repr__(self) -> str:
        return f"Sink({self.kind!r})"


def checked_kind(kind: Any, where: str) -> str:
    """`kind` in lower case; `ToolDefinitionError` for what is no name."""
    if isinstance(kind, str) and kind.isidentifier():
        return kind.lower()
    raise ToolDefinitionError(
        f"{where}: the kind of a sink is a name such as 'recipient' or 'account', not {kind!r}"
    )
