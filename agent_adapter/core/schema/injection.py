"""Parameters that the library fills in, so that no model can supply them."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from agent_adapter.core.context import ToolContext
from agent_adapter.core.inject import Depends
from agent_adapter.core.routing import ChannelMarker

InjectionKind = Literal[
    "context", "depends", "channel", "channel_state", "agent_client", "hub", "task"
]
"""The kinds of injected values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One parameter that the library fills in; `provider` belongs to the kind `depends`."""

    name: str
    kind: InjectionKind
    provider: Callable[..., Any] | None = None


_RECOGNISERS: list[tuple[Callable[[Any], bool], InjectionKind]] = []


def register_injection(predicate: Callable[[Any], bool], kind: InjectionKind) -> None:
    """Parameters that `predicate` accepts are filled in as `kind` in tools that are defined later.

    `predicate` is asked about the parameter's type and about each item of its `Annotated` metadata.
    """
    _RECOGNISERS.append((predicate, kind))


def injection_of(name: str, annotation: Any) -> Injection | None:
    """How the parameter `name` is filled in; `None` if the model supplies it."""
    base, metadata = _split(annotation)
    for item in metadata:
        if isinstance(item, Depends):
            return Injection(name=name, kind="depends", provider=item.provider)
        if isinstance(item, ChannelMarker):
            return Injection(name=name, kind=item.what)
    if any(_is_context(part) for part in (base, *_union_members(base))):
        return Injection(name=name, kind="context")
    for predicate, kind in _RECOGNISERS:
        if any(predicate(item) for item in (base, *metadata)):
            return Injection(name=name, kind=kind)
    return None


def _split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The bare type and all metadata, also of an `Annotated` inside an optional."""
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        inner, more = _split(base)
        return inner, (*metadata, *more)
    for member in _union_members(annotation):
        if get_origin(member) is Annotated:
            return annotation, tuple(get_args(member)[1:])
    return annotation, ()


def _union_members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return ()


def _is_context(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, ToolContext)
