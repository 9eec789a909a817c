"""Generator functions as tools: their items become one list."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

MAX_ITEMS = 10_000
"""The most items of a generator tool; one more is an error of the tool."""


def entry_of(
    fn: Callable[..., Any], collects: Literal["sync", "async"] | None
) -> Callable[..., Any]:
    """The function that a call enters: `fn`, or `fn` with its items collected into a list."""
    if collects is None:
        return fn
    return functools.partial(_collected_async if collects == "async" else _collected, fn)


def _collected(fn: Callable[..., Any], /, **arguments: Any) -> list[Any]:
    items: list[Any] = []
    for item in fn(**arguments):
        _add(items, item)
    return items


async def _collected_async(fn: Callable[..., Any], /, **arguments: Any) -> list[Any]:
    items: list[Any] = []
    async for item in fn(**arguments):
        _add(items, item)
    return items


def _add(items: list[Any], item: Any) -> None:
    if len(items) >= MAX_ITEMS:
        raise OverflowError(f"the tool gave more than {MAX_ITEMS} items")
    items.append(item)
