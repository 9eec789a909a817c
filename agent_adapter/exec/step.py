"""A step: an effect of a tool's own, recorded as a call that the tool makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.results import OPAQUE, ResultCodec
from agent_adapter.core.schema.from_function import runs_async
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.scope import Surroundings, current_scope

_CODEC = ResultCodec(None)


async def step(
    runner: ToolRunner, call: Surroundings, name: str, fn: Callable[..., Any], args: Sequence[Any]
) -> Any:
    """What `fn(*args)` gives, or has given when the tool of `call` was entered before."""
    if not callable(fn):
        raise ToolDefinitionError(f"ctx.step({name!r}): {fn!r} cannot be called; pass a function")
    for number, value in enumerate(args, 1):
        _refuse(value, f"ctx.step({name!r}): argument {number}", "pass JSON values")
    around, effect = current_scope.set(call), _effect.set(fn)
    try:
        spec = _spec(name, is_async=runs_async(fn))
        value = await runner.run_spec(spec, {"args": list(args)}, ToolContext())
    finally:
        _effect.reset(effect)
        current_scope.reset(around)
    return _refuse(value, f"ctx.step({name!r}) ran, and its value", "return JSON values")


def _refuse(value: Any, what: str, fix: str) -> Any:
    """The value as its record gives it back; an error where it cannot."""
    tag, data = _CODEC.encode(value)
    if tag == OPAQUE:
        raise ToolDefinitionError(
            f"{what} is a {type(value).__qualname__}, which cannot be recorded; {fix}: texts,"
            " numbers, True, False, None, and lists and dictionaries of them"
        )
    return value if tag == "json" else _CODEC.decode(tag, data)


@lru_cache(maxsize=512)
def _spec(name: str, *, is_async: bool) -> ToolSpec:
    """The tool that stands for steps of that name; what it runs is in `_effect`."""
    try:
        return ToolSpec.from_function(_awaited if is_async else _called, name=name)
    except ToolDefinitionError as exc:
        raise ToolDefinitionError(f"ctx.step: {exc}") from None


_effect: ContextVar[Callable[..., Any]] = ContextVar("agent_adapter_step")


async def _awaited(args: list[Any]) -> Any:
    """A step of a tool."""
    return await _effect.get()(*args)


def _called(args: list[Any]) -> Any:
    """A step of a tool."""
    return _effect.get()(*args)
