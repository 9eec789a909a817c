"""Agno's own functions as specs, so that they run under the executor and in other frameworks."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import IntegrationError, ToolDefinitionError, ToolFailed
from agent_adapter.core.names import fitting_name
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.agno.content import value_of
from agent_adapter.integrations.imports import jsonable

_ELSEWHERE = {
    "external_execution": "it is run outside of Agno, by the holder of its run",
    "requires_user_input": "Agno fills its arguments in by asking its user",
}


def imported(native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
    """`native` as a spec; Agno's `requires_confirmation` becomes `confirm=True`."""
    from agno.tools.function import Function

    if not isinstance(native, Function):
        raise IntegrationError(
            f"agno imports a Function (agno.tools.tool, Function.from_callable), not "
            f"{type(native).__name__}; of a toolkit, import each of its functions"
        )
    for flag, reason in _ELSEWHERE.items():
        if getattr(native, flag):
            raise IntegrationError(f"{native.name} cannot be imported: {reason}")
    _refuse_unfilled(native)
    # A copy, because processing writes the schema and the description into the function.
    function = native.model_copy(deep=False)
    function.parameters = dict(native.parameters)
    function.process_entrypoint()
    if function.requires_confirmation:
        policy = {"confirm": True, **policy}
    return ToolSpec.from_json_schema(
        name if name is not None else fitting_name(native.name),
        (function.description or "").strip() or f"The Agno function {native.name}.",
        function.parameters,
        _caller(function),
        **policy,
    )


def _refuse_unfilled(native: Any) -> None:
    """Refuse a function that Agno fills in with what only its own runs have."""
    from agno.agent import Agent
    from agno.run import RunContext
    from agno.team import Team

    entrypoint = inspect.unwrap(native.entrypoint)
    try:
        hints = get_type_hints(entrypoint)
    except Exception:  # a name that is known nowhere but where it was written
        hints = {}
    for name, parameter in inspect.signature(entrypoint).parameters.items():
        kind = hints.get(name, parameter.annotation)
        # A run context is checked even where it has a default: Agno gives `None` by its name.
        always = name == "run_context" and kind is RunContext
        if kind in (Agent, Team, RunContext) and (always or parameter.default is parameter.empty):
            raise ToolDefinitionError(
                f"{native.name}: its parameter {name} is Agno's {kind.__name__}, which is not "
                f"there elsewhere; make it optional ({name}: {kind.__name__} | None = None)"
            )


def _caller(function: Any) -> Any:
    from agno.tools.function import FunctionCall, ToolResult

    name = function.name

    def made(ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        copied = function.model_copy(deep=False)
        return FunctionCall(function=copied, arguments=arguments, call_id=ctx.call_id)

    async def asynchronous(agent_adapter_context: ToolContext, **arguments: Any) -> Any:
        outcome = await made(agent_adapter_context, arguments).aexecute()
        value = _value_of(name, outcome, ToolResult)
        if inspect.isasyncgen(value):
            value = [item async for item in value]
        return jsonable(value)

    def synchronous(agent_adapter_context: ToolContext, **arguments: Any) -> Any:
        outcome = made(agent_adapter_context, arguments).execute()
        return jsonable(_value_of(name, outcome, ToolResult))

    return asynchronous if _is_async(function) else synchronous


def _is_async(function: Any) -> bool:
    hooks = [function.pre_hook, function.post_hook, *(function.tool_hooks or ())]
    return any(
        inspect.iscoroutinefunction(part) or inspect.isasyncgenfunction(part)
        for part in (function.entrypoint, *hooks)
    )


def _value_of(name: str, outcome: Any, whole: Any) -> Any:
    if outcome.status != "success":
        # Agno keeps the text of the exception, which no model may read.
        raise ToolFailed(f"{name} failed in Agno")
    value = outcome.result
    return value_of(value) if isinstance(value, whole) else value
