"""AutoGen passes the contract kit, with the kit's runner and with the real executor."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat")

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.schema.dialects import inlined
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.autogen import autogen_tool, autogen_tools

from . import _autogen_agent as autogen
from .kit import contract_tests

pytestmark = pytest.mark.contract


class AutoGenHarness:
    """Drives real AutoGen agents; AutoGen has no approval, so the executor's port decides."""

    name = "autogen"
    edits_supported = True
    approval = "port"
    # A cancelled run leaves its tools running (microsoft/autogen#7956).
    cancels_tool = False
    # Not C11: AutoGen never pauses for a tool, so there is no state to tamper with.
    checks = frozenset({"C9", "C10", "C12", "C13", "C14", "C15"})

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The tool."""
        return autogen_tool(spec, executor=executor)

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for AutoGen."""
        return autogen_tools(registry, executor=executor)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One run of an agent with one call."""
        return (await self.call_many(native, [(call_id, args)]))[0]

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """One run whose first model turn makes several calls."""
        found = await autogen.run([native], [(i, native.name, args) for i, args in calls])
        return [found[call_id] for call_id, _ in calls]

    def value(self, raw: Any) -> Any:
        """Results are JSON text."""
        return json.loads(raw.content)

    def is_error(self, raw: Any) -> bool:
        """A result says whether it is one."""
        return bool(getattr(raw, "is_error", False))

    def shown(self, raw: Any) -> Any:
        """The content of the result."""
        return raw.content

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the executor asks by itself."""
        return await self.call(native, args, call_id="call_autogen_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What the tool says of itself."""
        schema = native.schema
        return schema["name"], schema["description"], schema["parameters"]

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """AutoGen takes a schema without references."""
        return inlined(spec.json_schema())


_TESTS = (
    *contract_tests(AutoGenHarness),
    *contract_tests(AutoGenHarness, runner_factory=Executor),
)
globals().update((item.__name__, item) for item in _TESTS)
