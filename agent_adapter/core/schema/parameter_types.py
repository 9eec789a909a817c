"""Prepares the annotations of parameters for Pydantic."""

from __future__ import annotations

import collections.abc
import types
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import Field

from agent_adapter.core.errors import ToolDefinitionError

_ONE_SHOT: dict[Any, str] = {
    collections.abc.Iterator: "an iterator",
    collections.abc.Generator: "a generator",
    collections.abc.AsyncIterable: "an async iterable",
    collections.abc.AsyncIterator: "an async iterator",
    collections.abc.AsyncGenerator: "an async generator",
}
_CONTAINERS = (list, dict, set, frozenset, tuple, collections.abc.Iterable)


def described_type(annotation: Any) -> Any:
    """`annotation` in which `Annotated[T, "text"]` and `Doc("text")` are descriptions.

    A `Field(description=…)` beside them wins.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        base, *metadata = args
        texts = [text for item in metadata if (text := _text(item))]
        rest = [item for item in metadata if _text(item) is None]
        described = [Field(description=" ".join(texts))] if texts else []
        inner = described_type(base)
        return Annotated[(inner, *described, *rest)] if described or rest else inner
    parts = tuple(described_type(part) for part in args)
    if all(new is old for new, old in zip(parts, args, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return Union[parts]  # noqa: UP007  # the parts are known only here
    return origin[parts] if origin in _CONTAINERS else annotation


def refuse_one_shot(tool: str, parameter: str, annotation: Any) -> None:
    """Refuses values that can be read only once: checking would consume them."""
    for part in (get_origin(annotation) or annotation, *get_args(annotation)):
        if get_args(part):
            refuse_one_shot(tool, parameter, part)
        try:
            kind = _ONE_SHOT.get(part)
        except TypeError:  # metadata that has no hash
            continue
        if kind is not None:
            raise ToolDefinitionError(
                f"tool {tool!r}: parameter {parameter!r} is {kind}, which can be read only once; "
                "use `list[T]`, or `Iterable[T]`, which is read into a list"
            )


def _text(item: Any) -> str | None:
    """The description in a metadata item: a text, or PEP 727's `Doc`."""
    if isinstance(item, str):
        return item.strip()
    words = getattr(item, "documentation", None)
    return words.strip() if type(item).__name__ == "Doc" and isinstance(words, str) else None
