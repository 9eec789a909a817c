"""Microsoft AutoGen 0.7: each tool as an `autogen_core.tools.BaseTool`.

This is `autogen-core` and `autogen-agentchat`, neither AG2 nor the older `autogen` 0.2.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_text, told
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalPending,
    ToolArgsInvalid,
    ToolDefinitionError,
    ToolError,
    ToolFailed,
)
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.schema.dialects import inlined
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface

if TYPE_CHECKING:
    from autogen_core.tools import BaseTool


_READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("autogen_core", ("CancellationToken",)),
    ("autogen_core.tools", ("BaseTool", "BaseTool.run_json", "BaseTool.return_value_as_string")),
)

_Call = Callable[[Any, str | None], Awaitable[str]]


def autogen_tool(spec: ToolSpec, *, executor: ToolRunner | None = None) -> BaseTool[Any, Any]:
    """One AutoGen tool that runs `spec` through the executor; results are JSON text.

    AutoGen has no approval for tools: the executor's port decides about confirm tools. It has no
    run either: rules kept per run refuse or ask, unless `executor.run_scope(…)` surrounds it.

    Raises:
        ToolDefinitionError: the schema refers to itself; AutoGen's clients need it without `$ref`.
        MissingDependency: AutoGen is not installed.
        IntegrationError: AutoGen is outside the supported range, or lacks a name that is read.
    """
    _check_autogen()
    tool: BaseTool[Any, Any] = _bridge_class()(spec, _schema(spec), _call(spec, executor))
    return tool


def autogen_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    on_error: OnError = "skip",
) -> list[BaseTool[Any, Any]]:
    """One `autogen_tool` per tool of `registry` that is exported to `autogen`, in its order."""
    return exported(
        "autogen", registry, lambda spec: autogen_tool(spec, executor=executor), on_error
    )


class AutoGenIntegration(IntegrationBase):
    """AutoGen as a target: `get_integration("autogen")`."""

    name = "autogen"
    requires: tuple[str, ...] = ("autogen_core", "autogen_agentchat")
    extra: str | None = "autogen"
    call_id_fields = ("id", "call_id")

    def export_tool(
        self, spec: ToolSpec, *, executor: ToolRunner | None = None
    ) -> BaseTool[Any, Any]:
        """The `autogen_tool` of `spec`."""
        return autogen_tool(spec, executor=executor)

    def import_tool(self, native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
        """An AutoGen tool as a spec; untrusted and egress unless `policy` says otherwise.

        Raises:
            ToolDefinitionError: `native` is no AutoGen tool.
        """
        _check_autogen()
        from autogen_core.tools import BaseTool

        if not isinstance(native, BaseTool):
            raise ToolDefinitionError(
                f"{native!r} is no AutoGen tool; wrap a function in "
                "autogen_core.tools.FunctionTool, or register the function itself"
            )
        chosen = name if name is not None else native.name
        schema: Mapping[str, Any] = native.schema.get("parameters") or {"type": "object"}
        return ToolSpec.from_json_schema(
            chosen, native.description or chosen, schema, _caller(native), **policy
        )


INTEGRATION = AutoGenIntegration()


@cache
def _check_autogen() -> None:
    check_surface("autogen", "autogen_core", _READS)


def _schema(spec: ToolSpec) -> dict[str, Any]:
    """The schema without references: AutoGen's Anthropic client drops `$defs`."""
    try:
        return inlined(spec.json_schema())
    except ValueError as exc:
        raise ToolDefinitionError(f"{spec.name}: AutoGen cannot show its schema: {exc}") from exc


def _call(spec: ToolSpec, executor: ToolRunner | None) -> _Call:
    """One call: its result as JSON text, its errors as exceptions whose text a model may read."""
    run_spec = runner_for(executor).run_spec

    async def call(args: Any, call_id: str | None) -> str:
        ctx = ToolContext(call_id or None, bound_by="autogen")
        try:
            if not isinstance(args, Mapping):
                raise ToolArgsInvalid(spec.name, ["(arguments): not a JSON object"])
            value = await run_spec(spec, args, ctx, call_id=ctx.call_id)
            return answer_text(told(value, ctx.edited))
        except ApprovalPending:
            raise  # AutoGen shows "approval required: apr_…" as the call's error
        except Exception as exc:
            raise _shown(spec.name, exc) from exc

    return call


def _shown(tool: str, error: Exception) -> ToolError:
    """The error as a model may read it: AutoGen shows `str(exc)`."""
    if not isinstance(error, AgentAdapterError):
        error = ToolFailed(f"{tool} failed: {type(error).__name__}")
    return ToolError(answer_text(error=error))


@cache
def _bridge_class() -> Any:
    """The `BaseTool` whose entry is ours, so that AutoGen neither derives nor validates."""
    from autogen_core.tools import BaseTool
    from pydantic import BaseModel, ConfigDict

    class AnyArguments(BaseModel):
        """Whatever the model sends; the executor validates it."""

        model_config = ConfigDict(extra="allow")

    class BridgeTool(BaseTool[AnyArguments, Any]):
        """An exported tool."""

        def __init__(self, spec: ToolSpec, schema: dict[str, Any], call: _Call) -> None:
            super().__init__(AnyArguments, object, spec.name, spec.description)
            self._parameters = schema
            self._call = call
            setattr(self, SPEC_ATTRIBUTE, spec)

        @property
        def schema(self) -> Any:
            """Name, description and parameters, a fresh copy."""
            return {
                "name": self._name,
                "description": self._description,
                "parameters": copy.deepcopy(self._parameters),
                "strict": False,
            }

        async def run(self, args: AnyArguments, cancellation_token: Any) -> str:
            """Run one call without an id."""
            return await self._call(args.model_dump(), None)

        async def run_json(
            self, args: Any, cancellation_token: Any, call_id: str | None = None
        ) -> str:
            """Run one call through the executor."""
            return await self._call(args, call_id)

        def return_value_as_string(self, value: Any) -> str:
            """The JSON text that a call gave."""
            return value if isinstance(value, str) else answer_text(value)

    return BridgeTool


def _caller(native: Any) -> Any:
    """A function of the tool's arguments; cancelling it cancels AutoGen's token."""
    from autogen_core import CancellationToken

    async def call(agent_adapter_context: ToolContext, **arguments: Any) -> Any:
        token = CancellationToken()
        try:
            return await native.run_json(arguments, token, call_id=agent_adapter_context.call_id)
        except BaseException:
            token.cancel()
            raise

    return call
