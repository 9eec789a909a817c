"""Agno 3: each tool as an `agno.tools.function.Function`; your port resolves its pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.native import NativeTools
from agent_adapter.core.ports import ToolRunner, TurnView
from agent_adapter.core.tool import ToolSpec
from agent_adapter.flow.reply import Reply
from agent_adapter.integrations.agno.calls import run_of
from agent_adapter.integrations.agno.export import agno_function, agno_functions, check_agno
from agent_adapter.integrations.agno.gate import resolve_requirements
from agent_adapter.integrations.agno.places import identity_of
from agent_adapter.integrations.base import IntegrationBase

if TYPE_CHECKING:
    from agno.tools.function import Function


__all__ = [
    "INTEGRATION",
    "AgnoIntegration",
    "agno_function",
    "agno_functions",
    "resolve_requirements",
]


class AgnoIntegration(IntegrationBase):
    """Agno as a target: `get_integration("agno")`."""

    name = "agno"
    requires: tuple[str, ...] = ("agno",)
    extra: str | None = "agno"
    call_id_fields = ("call_id",)

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Function:
        """The `agno_function` of `spec`."""
        return agno_function(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """The ids of one `FunctionCall`, and its place in the agent's run."""
        ctx = super().bind_context(native)
        ctx.run_id, ctx.thread_id = run_of(native)
        ctx.identity = identity_of(native)
        return ctx

    def import_tool(self, native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
        """An Agno `Function` as a spec; untrusted and egress unless `policy` says otherwise.

        A function that requires confirmation becomes a tool that our port is asked about. Raises
        `IntegrationError` for what is no function, or runs outside of Agno.
        """
        from agent_adapter.integrations.agno import imports

        check_agno()
        return imports.imported(native, name=name, **policy)

    def drives(self, agent: Any) -> bool:
        """Whether `agent` is an `agno.agent.Agent`."""
        from agent_adapter.integrations.agno import driver

        return driver.drives(agent)

    def native_tools(self, agent: Any) -> NativeTools:
        """The own tools of an `agno.agent.Agent`."""
        from agent_adapter.integrations.agno import driver

        return driver.native_tools(agent)

    async def drive(self, agent: Any, turn: TurnView) -> Reply:
        """One round of an `agno.agent.Agent`; its own tools run through the turn's executor too."""
        from agent_adapter.integrations.agno import driver

        check_agno()
        return await driver.drive(agent, turn)


INTEGRATION = AgnoIntegration()
