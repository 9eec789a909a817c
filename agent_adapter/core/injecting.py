"""The values of injected parameters for one call."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Iterable
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.schema.injection import Injection, injection_of


@contextlib.asynccontextmanager
async def injected_values(
    injected: Iterable[Injection], ctx: ToolContext | None
) -> AsyncIterator[dict[str, Any]]:
    """The injected arguments by name; the code of providers after `yield` runs on exit.

    The channel and its state are `ctx.extras["channel"]` and `["channel_state"]`, which may be
    functions that return them; `None` outside of a channel.
    """
    given = ToolContext() if ctx is None else ctx
    async with contextlib.AsyncExitStack() as stack:
        values: dict[str, Any] = {}
        for injection in injected:
            values[injection.name] = await _value(injection, given, stack)
        yield values


async def _value(injection: Injection, ctx: ToolContext, stack: contextlib.AsyncExitStack) -> Any:
    if injection.kind == "context":
        return ctx
    if injection.kind != "depends" or injection.provider is None:
        return _from_channel(ctx.extras.get(injection.kind))
    provider = injection.provider
    arguments = (ctx,) if _takes_argument(provider) else ()
    if inspect.isasyncgenfunction(provider):
        return await stack.enter_async_context(contextlib.asynccontextmanager(provider)(*arguments))
    if inspect.isgeneratorfunction(provider):
        return stack.enter_context(contextlib.contextmanager(provider)(*arguments))
    given = provider(*arguments)
    return await given if inspect.isawaitable(given) else given


def _from_channel(value: Any) -> Any:
    return value() if inspect.isfunction(value) or inspect.ismethod(value) else value


def _takes_argument(provider: Any) -> bool:
    """Whether the provider has a parameter that must be given: the context."""
    try:
        parameters = inspect.signature(provider).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    return any(
        parameter.kind in positional
        and (
            parameter.default is inspect.Parameter.empty
            or injection_of(parameter.name, parameter.annotation) is not None
        )
        for parameter in parameters
    )
