"""The demo's Agno agent: a real `agno.agent.Agent` whose model follows a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import ApprovalPending
from agent_adapter.integrations.agno import agno_functions, resolve_requirements

if TYPE_CHECKING:
    from agent_adapter.cli.demo.conversation import DemoMessage
    from agent_adapter.core.ports import ApprovalPort
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.exec.executor import Executor


class AgnoDemoAgent:
    """An Agno agent that reads order B2 and requests a partial refund."""

    framework = "Agno"

    def __init__(self, registry: ToolRegistry, executor: Executor, port: ApprovalPort) -> None:
        from agno.agent import Agent

        from agent_adapter.cli.demo.agno_model import ScriptedModel

        turns: list[Any] = [
            [("agno-1", "order_status", {"order_id": "B2"})],
            [("agno-2", "refund", {"order_id": "B2", "amount": 19.0})],
            "A fifth of the chair is paid back.",
        ]
        tools = agno_functions(registry, executor=executor)
        self._agent = Agent(model=ScriptedModel(turns=turns), tools=tools, telemetry=False)
        self._registry = registry
        self._port = port
        self._output: Any = None

    async def start(self) -> list[DemoMessage]:
        """The run up to its pause: Agno stops before a tool that needs a confirmation."""
        from agent_adapter.cli.demo.conversation import DemoMessage

        self._output = await self._agent.arun("My chair (order B2) arrived late.")
        said = self._said(0)[:-1]
        try:
            await resolve_requirements(self._output, self._port, self._registry)
        except ApprovalPending as pending:
            said.append(DemoMessage(tool="refund", shown=str(pending)))
        return said

    async def resume(self) -> list[DemoMessage]:
        """The same run, continued after a person decided."""
        seen = sum(tool.result is not None for tool in self._output.tools or [])
        await resolve_requirements(self._output, self._port, self._registry)
        self._output = await self._agent.acontinue_run(run_response=self._output)
        return self._said(seen)

    def _said(self, seen: int) -> list[DemoMessage]:
        from agent_adapter.cli.demo.conversation import DemoMessage

        tools = [tool for tool in self._output.tools or [] if tool.result is not None]
        said = [DemoMessage(tool=tool.tool_name, shown=str(tool.result)) for tool in tools]
        return [*said[seen:], DemoMessage(tool=None, shown=str(self._output.content))]
