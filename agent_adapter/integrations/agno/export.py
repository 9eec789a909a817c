"""A spec as Agno's `Function`, and what happens in one call of it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from agent_adapter.core.answers import answer_text, told
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    ToolDefinitionError,
    ToolFailed,
)
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.result_parts import parts_of
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.agno.calls import as_sent, bind, rewritable, said_to
from agent_adapter.integrations.agno.content import tool_result
from agent_adapter.integrations.agno.gate import EXPORTED_BY, PASSED
from agent_adapter.integrations.agno.places import identity_of
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface

if TYPE_CHECKING:
    from agno.tools.function import Function, FunctionCall, ToolResult


READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("agno.exceptions", ("AgentRunException", "RunCancelledException")),
    ("agno.run.requirement", ("RunRequirement.needs_confirmation", "RunRequirement.reject")),
    (
        "agno.tools.function",
        (
            "Function",
            "Function.__private_attributes__._run_context",
            "Function.model_fields.skip_entrypoint_processing",
            "Function.model_fields.requires_confirmation",
            "FunctionCall.model_fields.call_id",
        ),
    ),
)
"""Every name of Agno that is read here; a release without one of them is refused by name."""

EXPORTED = "__agent_adapter_exported__"
"""Marks the entrypoints made here: a function of the user's may carry a spec as well."""

# Agno hands its own objects to parameters of these names, whatever the model sent.
_TAKEN_ARGUMENTS = ("fc", "_agno_agent", "_agno_team", "_agno_run_context")
# Agno answers tools of these names itself, by asking its user.
_TAKEN_NAMES = ("get_user_input", "ask_user")


@cache
def check_agno() -> None:
    """Raises `MissingDependency` or `IntegrationError` where this Agno cannot be used."""
    check_surface("agno", "agno", READS)


def agno_function(spec: ToolSpec, *, executor: ToolRunner | None = None) -> Function:
    """One Agno `Function` that runs `spec` through the executor; results are JSON text.

    Any confirm rule makes the agent pause before the call: see `resolve_requirements`. Agno's
    confirmation alone approves nothing. Agents must be run with `arun`: the function is async.

    Raises:
        ToolDefinitionError: Agno would hijack the tool's name or one of its arguments.
        MissingDependency: Agno is not installed.
        IntegrationError: Agno is outside the supported range, or lacks a name this module reads.
    """
    check_agno()
    from agno.tools.function import Function

    schema = spec.json_schema()
    _refuse_taken(spec, schema)
    runner = runner_for(executor)
    EXPORTED_BY[spec] = ref(runner)
    return Function(
        name=spec.name,
        description=spec.description,
        parameters=schema,
        entrypoint=_entrypoint(spec, runner),
        skip_entrypoint_processing=True,
        requires_confirmation=True if spec.confirm is not False else None,
    )


def agno_functions(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    on_error: OnError = "skip",
) -> list[Function]:
    """One `agno_function` per tool of `registry` that is exported to `agno`, in its order."""
    return exported("agno", registry, lambda spec: agno_function(spec, executor=executor), on_error)


def _said(call: FunctionCall) -> list[str]:
    run = call.function._run_context
    return said_to(call.function._agent, run.messages if run else None)


def _refuse_taken(spec: ToolSpec, schema: Mapping[str, Any]) -> None:
    if spec.name in _TAKEN_NAMES:
        raise ToolDefinitionError(
            f"{spec.name}: Agno answers tools of this name itself, by asking its user; "
            "rename the tool or leave agno out of its targets"
        )
    for name in _TAKEN_ARGUMENTS:
        if name in schema.get("properties", {}):
            raise ToolDefinitionError(
                f"{spec.name}: Agno puts an object of its own into a parameter named {name}, so "
                f"the model's value would be lost; rename {name} or leave agno out of the targets"
            )


def _entrypoint(spec: ToolSpec, runner: ToolRunner) -> Callable[..., Awaitable[str | ToolResult]]:
    """The function Agno calls: `entrypoint(fc, **arguments)`."""
    from agno.exceptions import AgentRunException, RunCancelledException

    run_spec = runner.run_spec
    passing = (AgentRunException, RunCancelledException, ApprovalPending)

    async def entrypoint(fc: FunctionCall, **native: Any) -> str | ToolResult:
        ctx = bind(fc)
        ctx.said = partial(_said, fc)
        args: Mapping[str, Any] = native
        held = PASSED.take(ctx, spec, native) if PASSED.held else None
        if held is not None:
            args, ctx.approval, ctx.identity = held.args, held.grant.token, held.identity
        else:
            ctx.identity = identity_of(fc)
            if rewritable(native):
                run = fc.function._run_context
                args = as_sent(native, ctx.call_id, spec.name, run.messages if run else None)
        try:
            value = told(await run_spec(spec, args, ctx, call_id=ctx.call_id), ctx.edited)
            parts = parts_of(value)
            return tool_result(parts) if parts else answer_text(value)
        except MODEL_VISIBLE_ERRORS as exc:
            return answer_text(error=exc)
        except passing:
            raise  # Agno reports a failed call; a pending approval is no success
        except Exception as exc:
            # Agno shows the model `str(exc)`: only the class may be in it.
            raise ToolFailed(type(exc).__name__) from exc
        finally:
            if held is not None:
                held.grant.drop()

    # Agno inspects the signature at each call; these two make that cheap.
    signature = inspect.signature(entrypoint)
    entrypoint.__annotations__ = {}
    setattr(entrypoint, SPEC_ATTRIBUTE, spec)
    setattr(entrypoint, EXPORTED, True)
    entrypoint.__signature__ = signature.replace(  # type: ignore[attr-defined]  # read by inspect
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    return entrypoint
