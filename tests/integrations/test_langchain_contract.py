"""LangChain passes the contract kit, with the kit's runner and with the real executor."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain_core.utils.function_calling import convert_to_openai_tool

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.langchain import (
    approval_middleware,
    langchain_tool,
    langchain_tools,
)

from ..fakes.approval import FakeApproval
from . import _langchain_agent as langchain
from ._langchain_model import untitled
from .kit import contract_tests

pytestmark = pytest.mark.contract


class LangChainHarness:
    """Drives real LangChain agents; the middleware asks the port."""

    name = "langchain"
    edits_supported = False
    approval = "native"
    native_uses_port = True
    checks = frozenset({"C9", "C10", "C12", "C13", "C14", "C15"})

    def __init__(self) -> None:
        self._port = FakeApproval()
        self._gates: dict[int, Any] = {}

    def approval_port(self) -> FakeApproval:
        """The port behind the middleware."""
        return self._port

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The tool; the middleware of its agents is made for the same executor."""
        registry = ToolRegistry()
        registry.add(spec)
        native = langchain_tool(spec, executor=executor)
        self._gates[id(native)] = (
            native,
            approval_middleware(self._port, registry, executor=executor),
        )
        return native

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for LangChain."""
        return langchain_tools(registry, executor=executor)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One run of an agent with one call; its tool message."""
        return (await self.call_many(native, [(call_id, args)]))[0]

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """One run whose first model turn makes several calls."""
        turn = [(i, native.name, args) for i, args in calls]
        agent = langchain.agent_of([native], turn, middleware=[self._gates[id(native)][1]])
        answers = langchain.answers(await langchain.run(agent))
        return [answers[call_id] for call_id, _ in calls]

    def value(self, raw: Any) -> Any:
        """Results are JSON text."""
        return json.loads(raw.content)

    def is_error(self, raw: Any) -> bool:
        """A tool message says whether it is one."""
        return getattr(raw, "status", None) == "error"

    def shown(self, raw: Any) -> Any:
        """The content of the tool message."""
        return raw.content

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the middleware asks by itself."""
        return await self.call(native, args, call_id="call_langchain_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What LangChain's clients send."""
        function = convert_to_openai_tool(native)["function"]
        return function["name"], function["description"], function["parameters"]

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """LangChain inlines references and drops every title."""
        return untitled(spec)


_TESTS = (
    *contract_tests(LangChainHarness),
    *contract_tests(LangChainHarness, runner_factory=Executor),
)
globals().update((item.__name__, item) for item in _TESTS)
