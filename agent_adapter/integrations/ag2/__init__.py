"""AG2 1.x: each tool as an `ag2.tools.types.FunctionTool`, a port's approval as tool middleware.

This is the `ag2` package (`from ag2 import Agent`), neither autogen 0.2 nor Microsoft AutoGen 0.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.native import NativeTools
from agent_adapter.core.ports import ToolRunner, TurnView
from agent_adapter.core.tool import ToolSpec
from agent_adapter.flow.reply import Reply
from agent_adapter.integrations.ag2.calls import bind
from agent_adapter.integrations.ag2.export import ag2_tool, ag2_tools, check_ag2
from agent_adapter.integrations.base import IntegrationBase

if TYPE_CHECKING:
    from ag2.tools.types import FunctionTool


__all__ = ["INTEGRATION", "Ag2Integration", "ag2_tool", "ag2_tools"]


class Ag2Integration(IntegrationBase):
    """AG2 as a target: `get_integration("ag2")`."""

    name = "ag2"
    requires: tuple[str, ...] = ("ag2",)
    extra: str | None = "ag2"
    call_id_fields = ("id",)

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> FunctionTool:
        """The `ag2_tool` of `spec`; the executor's own port decides about confirm tools."""
        return ag2_tool(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """A context for a `ToolCallEvent`; for `(event, context)` the stream is the run."""
        event, context = native if isinstance(native, tuple) else (native, None)
        if context is None:
            return super().bind_context(event)
        return bind(event, str(context.stream.id))

    def import_tool(self, native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
        """An AG2 function tool as a spec; untrusted and egress unless `policy` says otherwise.

        A tool with AG2's own `approval_required` becomes one that our port is asked about.
        Raises `IntegrationError` for what is no function tool.
        """
        from agent_adapter.integrations.ag2 import imports

        check_ag2()
        return imports.imported(native, name=name, **policy)

    def drives(self, agent: Any) -> bool:
        """Whether `agent` is an `ag2.Agent`."""
        from agent_adapter.integrations.ag2 import driver

        return driver.drives(agent)

    def native_tools(self, agent: Any) -> NativeTools:
        """The own tools of an `ag2.Agent`."""
        from agent_adapter.integrations.ag2 import driver

        return driver.native_tools(agent)

    async def drive(self, agent: Any, turn: TurnView) -> Reply:
        """One round of an `ag2.Agent`; its own tools run through the turn's executor too."""
        from agent_adapter.integrations.ag2 import driver

        check_ag2()
        return await driver.drive(agent, turn)


INTEGRATION = Ag2Integration()
