"""No framework: a loop over a provider's own client, and a tool for a loop of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.generic.loop import (
    CallEnded,
    CallMade,
    LoopEvent,
    LoopResult,
    TextPiece,
    run_tool_loop,
)
from agent_adapter.integrations.quarantine import OnError, exported

if TYPE_CHECKING:
    from agent_adapter.core.ports import ToolRunner
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec

__all__ = [
    "INTEGRATION",
    "CallEnded",
    "CallMade",
    "GenericIntegration",
    "GenericTool",
    "LoopEvent",
    "LoopResult",
    "TextPiece",
    "generic_tool",
    "generic_tools",
    "run_tool_loop",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericTool:
    """A tool for a loop of your own: what a model is shown, and an async call.

    The call gives the value, or `{"error": {"kind", "message"}}`; `ApprovalPending` is raised.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    spec: ToolSpec = field(repr=False)
    runner: ToolRunner = field(repr=False)

    async def __call__(self, arguments: Mapping[str, Any], *, call_id: str | None = None) -> Any:
        """Run one call through the executor."""
        native = {"id": call_id}
        return await INTEGRATION._run_bound(native, self.spec, arguments, self.runner)


def generic_tool(spec: ToolSpec, *, executor: ToolRunner | None = None) -> GenericTool:
    """One `GenericTool` that runs `spec` through the executor."""
    return GenericTool(
        name=spec.name,
        description=spec.description,
        parameters=spec.json_schema(),
        spec=spec,
        runner=runner_for(executor),
    )


def generic_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    on_error: OnError = "skip",
) -> list[GenericTool]:
    """One `generic_tool` per tool of `registry` that is exported to `generic`, in its order."""
    return exported(
        "generic", registry, lambda spec: generic_tool(spec, executor=executor), on_error
    )


class GenericIntegration(IntegrationBase):
    """No framework as a target: `get_integration("generic")`."""

    name = "generic"
    requires: tuple[str, ...] = ()
    extra: str | None = None
    call_id_fields = ("id",)

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> GenericTool:
        """The `generic_tool` of `spec`."""
        return generic_tool(spec, executor=executor)


INTEGRATION = GenericIntegration()
