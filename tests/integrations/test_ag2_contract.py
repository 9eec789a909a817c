"""AG2 passes the contract kit, with the kit's runner and with the real executor."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2.events import ToolErrorEvent

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.ag2 import ag2_tool, ag2_tools

from ..fakes.approval import FakeApproval
from . import _ag2_agent as agent
from .kit import contract_tests

pytestmark = pytest.mark.contract


class Ag2Harness:
    """Drives real AG2 agents; the gate in the tool's middleware asks the port."""

    name = "ag2"
    edits_supported = False
    approval = "native"
    native_uses_port = True
    checks = frozenset({"C9", "C10", "C13", "C14", "C15"})

    def __init__(self) -> None:
        self._port = FakeApproval()

    def approval_port(self) -> FakeApproval:
        """The port behind the gate."""
        return self._port

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The tool with its gate."""
        return ag2_tool(spec, executor=executor, approval=self._port)

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for AG2."""
        return ag2_tools(registry, executor=executor, approval=self._port)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One turn of an agent with one call; its result event."""
        event = agent.call_event(native.name, args, call_id=call_id)
        return (await agent.run([native], event))[call_id]

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """One turn with several calls."""
        events = [agent.call_event(native.name, args, call_id=i) for i, args in calls]
        found = await agent.run([native], *events)
        return [found[call_id] for call_id, _ in calls]

    def value(self, raw: Any) -> Any:
        """The content or data of the result's one part."""
        return agent.value(raw)

    def is_error(self, raw: Any) -> bool:
        """AG2 has an event of its own for errors."""
        return isinstance(raw, ToolErrorEvent)

    def shown(self, raw: Any) -> str:
        """What AG2's provider clients send."""
        return agent.shown(raw)

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the gate asks by itself."""
        return await self.call(native, args, call_id="call_ag2_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What the tool's schema says."""
        function = native.schema.function
        return function.name, function.description, function.parameters

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """AG2 takes the neutral schema."""
        return spec.json_schema()


_TESTS = (*contract_tests(Ag2Harness), *contract_tests(Ag2Harness, runner_factory=Executor))
globals().update((item.__name__, item) for item in _TESTS)
