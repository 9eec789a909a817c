"""LangChain 1.x: each tool as a `BaseTool`; your port decides in the agent's middleware."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import MODEL_VISIBLE_ERRORS
from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.gate import Gate, Grant
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.langchain_core.calls import GRANTED, Granted, native_of
from agent_adapter.integrations.langchain_core.export import READS, bridge_tool, shown
from agent_adapter.integrations.langchain_core.gate import until_decided
from agent_adapter.integrations.langchain_core.imports import imported
from agent_adapter.integrations.langchain_core.locate import locate
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface, require_port

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
    from langchain_core.tools import BaseTool


_READS = (
    *READS,
    ("langchain.agents.middleware", ("AgentMiddleware.awrap_tool_call", "ToolCallRequest")),
)


def langchain_tool(spec: ToolSpec, *, executor: ToolRunner | None = None) -> BaseTool:
    """One LangChain tool that runs `spec` through the executor; results are JSON text.

    The executor's port decides about confirm tools, unless `approval_middleware` of the agent has
    asked before. While a port has not decided, an agent with a checkpointer is interrupted (what it
    is resumed with decides nothing); without one `ApprovalPending` ends the run.

    Raises:
        MissingDependency: LangChain is not installed.
        IntegrationError: LangChain is outside the supported range, or lacks a name that is read.
    """
    _check_langchain()
    tool: BaseTool = bridge_tool("langchain", spec, runner_for(executor))
    return tool


def langchain_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    on_error: OnError = "skip",
) -> list[BaseTool]:
    """One `langchain_tool` per tool of `registry` that is exported to `langchain`, in its order."""
    return exported(
        "langchain", registry, lambda spec: langchain_tool(spec, executor=executor), on_error
    )


def approval_middleware(
    port: ApprovalPort,
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    allow_edits: bool = False,
) -> AgentMiddleware[Any, Any]:
    """Middleware for `create_agent` that asks `port` about calls whose confirm rule says so.

    `executor` is the one that the agent's tools were exported with. A call that is let by holds a
    one-use token, so the executor does not ask again. Tools of others pass. `allow_edits` lets the
    port change the arguments; else a decision with edits is a denial.

    Raises:
        TypeError: `port` is not an `ApprovalPort`.
    """
    require_port(port)
    _check_langchain()
    gate = _Gated(Gate(runner_for(executor), port), registry, allow_edits)
    middleware: AgentMiddleware[Any, Any] = _middleware_class()(gate)
    return middleware


class LangChainIntegration(IntegrationBase):
    """LangChain as a target: `get_integration("langchain")`."""

    name = "langchain"
    requires: tuple[str, ...] = ("langchain", "langchain_core")
    extra: str | None = "langchain"
    call_id_fields = ("id", "tool_call_id")
    reexecutes = True  # an agent is a graph: a task that was interrupted or is retried runs again

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> BaseTool:
        """The `langchain_tool` of `spec`."""
        return langchain_tool(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """The ids of a tool call, of a `ToolRuntime`, or of a `ToolCallRequest`."""
        runtime = getattr(native, "runtime", native)
        call_id = super().bind_context(getattr(native, "tool_call", native)).call_id
        return native_of(call_id, runtime).context(self.name)

    def import_tool(self, native: Any, **policy: Any) -> ToolSpec:
        """A LangChain tool as a spec; untrusted and egress unless `policy` says otherwise."""
        _check_langchain()
        return imported(native, **policy)


INTEGRATION = LangChainIntegration()

_Handler = Callable[[Any], Awaitable[Any]]


@cache
def _check_langchain() -> None:
    check_surface("langchain", "langchain", _READS)


class _Gated:
    """Asks about a call, and runs it with the token of the answer around it."""

    def __init__(self, gate: Gate, registry: ToolRegistry, allow_edits: bool) -> None:
        self._gate = gate
        self._specs = {spec.name: spec for spec in registry.for_target("langchain")}
        self._allow_edits = allow_edits

    def spec_of(self, request: ToolCallRequest) -> ToolSpec | None:
        """The spec behind the call where it asks; tools of others are not ours to gate."""
        spec: Any = getattr(request.tool, SPEC_ATTRIBUTE, None)
        known = self._specs.get(request.tool_call["name"])
        return known if known is spec and spec is not None and spec.confirm is not False else None

    async def run(self, request: ToolCallRequest, handler: _Handler) -> Any:
        """The tool's message, or the refusal as one."""
        spec = self.spec_of(request)
        if spec is None:
            return await handler(request)
        try:
            return await self._asked(spec, request, handler)
        except MODEL_VISIBLE_ERRORS as exc:
            return _refusal(request, exc)

    async def _asked(self, spec: ToolSpec, request: ToolCallRequest, handler: _Handler) -> Any:
        args = request.tool_call["args"]
        native = native_of(request.tool_call["id"], request.runtime)
        await locate(native, spec.name, args)

        async def ask() -> Grant:
            ctx, shown_args = native.context("langchain"), copy.deepcopy(args)
            return await self._gate.ask(spec, shown_args, ctx, edits_allowed=self._allow_edits)

        grant = await until_decided(native, spec.name, ask)
        held = GRANTED.set(Granted(spec, native, args, grant))
        try:
            return await handler(request)
        finally:
            GRANTED.reset(held)
            grant.drop()


def _refusal(request: ToolCallRequest, error: Exception) -> Any:
    from langchain_core.messages import ToolMessage

    call = request.tool_call
    return ToolMessage(shown(error), tool_call_id=call["id"], name=call["name"], status="error")


@cache
def _middleware_class() -> Any:
    from langchain.agents.middleware import AgentMiddleware

    class ApprovalGate(AgentMiddleware[Any, Any]):
        """Asks a port before a tool runs; agents with it are run with `ainvoke` or `astream`."""

        def __init__(self, gate: _Gated) -> None:
            super().__init__()
            self._gate = gate

        async def awrap_tool_call(self, request: Any, handler: _Handler) -> Any:
            """The call's message, once the port has agreed."""
            return await self._gate.run(request, handler)

    return ApprovalGate
