"""Agno passes the contract kit, with the kit's runner and with the real executor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("agno")

from agno.run.agent import RunOutput

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.agno import agno_function, agno_functions, resolve_requirements

from ..fakes.approval import FakeApproval
from . import _agno_agent as agno
from .kit import contract_tests

pytestmark = pytest.mark.contract


@dataclass(frozen=True, slots=True)
class _Raw:
    """Agno's record of a call, and the text of it that the model read."""

    execution: Any
    shown: str


class AgnoHarness:
    """Drives real Agno agents; their pauses are resolved by the port."""

    name = "agno"
    edits_supported = False
    approval = "native"
    native_uses_port = True
    parallel = False  # Agno runs the calls that were confirmed one after the other
    checks = frozenset({"C9", "C10", "C11", "C13", "C14", "C15"})

    def __init__(self) -> None:
        self._port = FakeApproval()
        self._registries: dict[str, ToolRegistry] = {}

    def approval_port(self) -> FakeApproval:
        """The port that resolves pauses."""
        return self._port

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The function; its registry is kept for the pauses."""
        registry = self._registries[spec.name] = ToolRegistry()
        registry.add(spec)
        return agno_function(spec, executor=executor)

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for Agno."""
        return agno_functions(registry, executor=executor)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One run of an agent with one call."""
        return (await self.call_many(native, [(call_id, args)]))[0]

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """One run whose first model turn makes several calls."""
        agent = agno.agent_of([native], [(i, native.name, args) for i, args in calls])
        output = await agent.arun("go")
        registry = self._registries[native.name]
        output = await agno.settled(agent, output, self._port, registry)
        texts = agno.shown(agent)
        found = {tool.tool_call_id: tool for tool in output.tools}
        return [_Raw(found[call_id], texts[call_id]) for call_id, _ in calls]

    async def paused(self, native: Any, args: dict[str, Any], *, call_id: str) -> str:
        """The run as AgentOS sends it to a client."""
        agent = agno.agent_of([native], [(call_id, native.name, args)])
        return json.dumps((await agent.arun("go")).to_dict())

    async def tampered(self, native: Any, state: str, kind: str) -> str:
        """What a client may change in it before it sends it back."""
        posted = json.loads(state)
        calls = [posted["tools"][0], posted["requirements"][0]["tool_execution"]]
        if kind == "run":
            posted["run_id"] = "run_other"
        changes: dict[str, dict[str, Any]] = {
            "arguments": {"tool_args": {"a": 9, "b": 9}},
            "call-id": {"tool_call_id": "call_other"},
            "approved": {"confirmed": True},
        }
        for call in calls:
            call |= changes.get(kind, {})
        return json.dumps(posted)

    async def resumed(self, native: Any, state: str) -> Any:
        """The run rebuilt from what came back, its open confirmations resolved by the port."""
        output = RunOutput.from_dict(json.loads(state))
        await resolve_requirements(output, self._port, self._registries[native.name])
        return await agno.agent_of([native]).acontinue_run(run_response=output)

    def value(self, raw: Any) -> Any:
        """Results are JSON text."""
        return json.loads(raw.shown)

    def is_error(self, raw: Any) -> bool:
        """A failed or rejected call, or the error that the model reads."""
        return bool(raw.execution.tool_call_error) or raw.shown.startswith('{"error": {"kind"')

    def shown(self, raw: Any) -> str:
        """The tool message."""
        return str(raw.shown)

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the pause is resolved by the port."""
        return await self.call(native, args, call_id="call_agno_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What the function says of itself."""
        return native.name, native.description, native.parameters

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """Agno takes the neutral schema."""
        return spec.json_schema()


_TESTS = (*contract_tests(AgnoHarness), *contract_tests(AgnoHarness, runner_factory=Executor))
globals().update((item.__name__, item) for item in _TESTS)
