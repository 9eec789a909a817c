"""Drivers of rounds: the integration of an agent's framework, or a function's own."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agent_adapter.core.errors import NetworkError, ToolDefinitionError
from agent_adapter.core.native import NativePolicies, Policy
from agent_adapter.core.ports import NativeToolOwner
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.flow.routing import RoundCall
from agent_adapter.network.turns.turn import Reply, Turn
from agent_adapter.network.turns.turn_runner import Drive


def driver_for(agent: Any) -> Drive:
    """The driver for `agent`, an agent of an installed framework or a function.

    Raises `NetworkError` for anything else; the message lists what can take part.
    """
    if is_function(agent):
        return drive_function
    from agent_adapter.integrations import discovery

    driver = discovery.driver_for(agent)
    if driver is not None:
        return driver.drive
    kind = f"{type(agent).__module__}.{type(agent).__qualname__}"
    raise NetworkError(
        f"a {kind} cannot take part in a channel: give an agent of an installed framework that has "
        "a driver, or a function `async def participant(turn)` or `def participant(text)`; people "
        "join with register_human"
    )


def native_policies(agent: Any, name: str, tools: Mapping[str, Policy] | None) -> NativePolicies:
    """The policies of the participant's own tools; `tools` is what the user says of them.

    Raises `ToolDefinitionError` for a tool that it does not have, and where its driver cannot apply
    policies: one that has no effect must not look as if it had one.
    """
    policies = NativePolicies(tools)
    if is_function(agent):
        if policies.said:
            raise ToolDefinitionError(
                f"{name} is a function, which has no tools of its own: say the policy of a tool "
                "that it calls with @tool"
            )
        return policies
    from agent_adapter.integrations import discovery

    owner: object = discovery.driver_for(agent)
    if isinstance(owner, NativeToolOwner):
        policies.check(owner.native_tools(agent), name)
    elif policies.said:
        raise ToolDefinitionError(
            f"{name}: the driver of a {type(agent).__qualname__} applies no policies to its own "
            "tools; leave out tools=, and give the agent exported tools instead"
        )
    return policies


def is_function(agent: Any) -> bool:
    """Whether `agent` is a function, method or partial, and not a class."""
    return inspect.isroutine(agent) or _is_partial(agent)


async def drive_function(function: Callable[..., Any], turn: Turn) -> Reply:
    """Run one round of a function participant.

    The first parameter receives the turn if it is named `turn` or annotated with `Turn`, else the
    text of the triggering message. The function returns a text, a `Handoff`, a `Finish`, a `Reply`,
    or `None` for a silent round. Synchronous functions run in a worker thread.
    """
    arguments = tuple(_argument(item, turn) for item in _parameters(function)[:1])
    if inspect.iscoroutinefunction(_inner(function)):
        given = await function(*arguments)
    else:
        given = await asyncio.to_thread(function, *arguments)
        given = await given if inspect.isawaitable(given) else given
    return _reply(function, turn, given)


def _reply(function: Callable[..., Any], turn: Turn, given: Any) -> Reply:
    calls = list(turn.calls)
    if isinstance(given, Reply):
        return Reply(given.body, [*calls, *given.calls])
    if isinstance(given, (Handoff, Finish)):
        # First in the list: the function's own decision outranks the calls that led to it.
        return Reply("", [RoundCall(tool=_name(function), result=given), *calls])
    if given is None or isinstance(given, str):
        return Reply(given or "", calls)
    raise NetworkError(
        f"the participant {_name(function)} returned a {type(given).__name__}; return a text, "
        "a Handoff, a Finish, a Reply, or None"
    )


def _argument(parameter: inspect.Parameter, turn: Turn) -> Any:
    annotated = parameter.annotation is Turn or parameter.annotation in ("Turn", "network.Turn")
    return turn if annotated or parameter.name == "turn" else turn.input_text


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Positional parameters without a default, or named `turn` or `text`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [inspect.Parameter("text", inspect.Parameter.POSITIONAL_ONLY)]
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return [
        item
        for item in parameters
        if item.kind in positional
        and (item.default is inspect.Parameter.empty or item.name in ("turn", "text"))
    ]


def _is_partial(agent: Any) -> bool:
    return isinstance(agent, functools.partial)


def _inner(function: Any) -> Any:
    return function.func if isinstance(function, functools.partial) else function


def _name(function: Any) -> str:
    return str(getattr(_inner(function), "__name__", "participant"))
