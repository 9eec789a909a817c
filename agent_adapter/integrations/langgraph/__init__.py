"""LangGraph 1.x: each tool as a LangChain `BaseTool`; the graph pauses until your port decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.native import NativeTools
from agent_adapter.core.ports import ApprovalPort, ToolRunner, TurnView
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.gate import Gate
from agent_adapter.flow.reply import Reply
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.langchain_core.calls import native_of
from agent_adapter.integrations.langchain_core.export import READS, bridge_tool
from agent_adapter.integrations.langchain_core.gate import APPROVAL
from agent_adapter.integrations.langchain_core.imports import imported
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface, require_port

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.types import Command, Interrupt


__all__ = [
    "INTEGRATION",
    "LangGraphIntegration",
    "langgraph_tool",
    "langgraph_tools",
    "pending_records",
    "resume_command",
]


def langgraph_tool(
    spec: ToolSpec,
    *,
    executor: ToolRunner | None = None,
    approval: ApprovalPort | None = None,
    allow_edits: bool = False,
) -> BaseTool:
    """One tool for a `ToolNode` that runs `spec` through the executor; results are JSON text.

    `approval` is asked about calls whose confirm rule says so; without it the executor's own port
    is. While that port has not decided, a graph with a checkpointer is interrupted; what it is
    resumed with decides nothing, the port is asked again. Without a checkpointer `ApprovalPending`
    ends the run. `allow_edits` lets the port change the arguments.

    Raises:
        MissingDependency: LangGraph is not installed.
        IntegrationError: LangGraph is outside the supported range, or lacks a name that is read.
        TypeError: `approval` is not an `ApprovalPort`.
    """
    _check_langgraph()
    runner = runner_for(executor)
    gate = None
    if approval is not None:
        require_port(approval)
        gate = Gate(runner, approval)
    tool: BaseTool = bridge_tool("langgraph", spec, runner, gate, allow_edits=allow_edits)
    return tool


def langgraph_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    approval: ApprovalPort | None = None,
    allow_edits: bool = False,
    on_error: OnError = "skip",
) -> list[BaseTool]:
    """One `langgraph_tool` per tool of `registry` that is exported to `langgraph`, in its order."""
    return exported(
        "langgraph",
        registry,
        lambda spec: langgraph_tool(
            spec, executor=executor, approval=approval, allow_edits=allow_edits
        ),
        on_error,
    )


def pending_records(output: Any) -> list[str]:
    """The approval records that a paused run waits for, in the order of its interrupts.

    `output` is what `ainvoke` gave, or an iterable of interrupts.
    """
    found: dict[str, None] = {}
    for item in _interrupts(output):
        found.update(dict.fromkeys(item.value["records"]))
    return list(found)


def resume_command(output: Any) -> Command[Any]:
    """A command that lets every call which waits for approval ask again; it approves nothing.

    Interrupts of other kinds stay open.
    """
    from langgraph.types import Command

    return Command(resume={item.id: True for item in _interrupts(output)})


def _interrupts(output: Any) -> Iterable[Interrupt]:
    if isinstance(output, Mapping):
        output = output.get("__interrupt__") or ()
    elif hasattr(output, "interrupts"):
        output = output.interrupts
    for item in output:
        if isinstance(item.value, Mapping) and item.value.get("type") == APPROVAL:
            yield item


class LangGraphIntegration(IntegrationBase):
    """LangGraph as a target: `get_integration("langgraph")`."""

    name = "langgraph"
    requires: tuple[str, ...] = ("langgraph",)
    extra: str | None = "langgraph"
    call_id_fields = ("id", "tool_call_id")
    reexecutes = True  # a node that was interrupted, or is retried, runs all its calls again

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> BaseTool:
        """The `langgraph_tool` of `spec`; the executor's own port decides about confirm tools."""
        return langgraph_tool(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """The ids of a tool call, of a `ToolRuntime`, or of a `ToolCallRequest`."""
        runtime = getattr(native, "runtime", native)
        call_id = super().bind_context(getattr(native, "tool_call", native)).call_id
        return native_of(call_id, runtime).context(self.name)

    def drives(self, agent: Any) -> bool:
        """Whether `agent` is a compiled graph; what LangChain's `create_agent` gives is one."""
        from agent_adapter.integrations.langgraph import driver

        return driver.drives(agent)

    def native_tools(self, agent: Any) -> NativeTools:
        """The own tools of a compiled graph's tool nodes."""
        from agent_adapter.integrations.langgraph import native

        return native.native_tools(agent)

    async def drive(self, agent: Any, turn: TurnView) -> Reply:
        """One round of a compiled graph whose state has `messages`."""
        from agent_adapter.integrations.langgraph import driver

        _check_langgraph()
        return await driver.drive(agent, turn)

    def import_tool(self, native: Any, **policy: Any) -> ToolSpec:
        """A LangChain tool as a spec; untrusted and egress unless `policy` says otherwise."""
        _check_langgraph()
        return imported(native, **policy)


INTEGRATION = LangGraphIntegration()


@cache
def _check_langgraph() -> None:
    check_surface("langgraph", "langgraph", READS)
