"""Anthropic passes the contract kit, by hand and through its tool runner."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("anthropic")

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.schema.providers import anthropic
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.anthropic import (
    anthropic_runnable,
    anthropic_runnables,
    anthropic_tool,
    anthropic_tools,
    run_tool_calls,
)

from ._provider_harness import Exported, ProviderHarness
from ._providers import MessagesScript
from .kit import contract_tests

pytestmark = pytest.mark.contract


class MessagesHarness(ProviderHarness):
    """A real client's Messages API."""

    name = "anthropic"

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """A tool dictionary."""
        return anthropic_tool(spec)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        """Every tool for Anthropic."""
        return [Exported(tool, registry, executor) for tool in anthropic_tools(registry)]

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """Two requests: the calls, and what became of them."""
        script = MessagesScript(calls)
        client = script.client()
        messages: list[Any] = [{"role": "user", "content": "go"}]
        options = {"model": "m", "max_tokens": 100, "tools": [exported.native]}
        message = await client.messages.create(messages=messages, **options)
        messages.append({"role": "assistant", "content": message.content})
        messages += await run_tool_calls(message, exported.registry, executor=exported.runner)
        await client.messages.create(messages=messages, **options)
        for call_id, block in script.results().items():
            assert block["is_error"] is self.is_error(script.answers()[call_id])
        return script.answers()

    def response(self, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
        """A message as JSON."""
        return MessagesScript().whole(calls)

    async def answered(self, exported: Exported, response: Any) -> Any:
        """The messages that answer it."""
        return await run_tool_calls(response, exported.registry, executor=exported.runner)

    def describe(self, exported: Any) -> tuple[str, str, dict[str, Any]]:
        """What the tool says of itself."""
        tool = exported.native
        shown = tool if isinstance(tool, dict) else tool.to_dict()
        return shown["name"], shown["description"], shown["input_schema"]

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """The neutral schema."""
        return anthropic(spec.json_schema())


class RunnerHarness(MessagesHarness):
    """A real client's beta tool runner, which does not tell a tool its call's id."""

    native_call_ids = False
    checks = MessagesHarness.checks - {"C11"}  # the runner keeps nothing of a paused call
    parallel = False  # the runner runs one call after the other

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """A runnable tool."""
        return anthropic_runnable(spec, executor=executor)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        """Every tool for the runner."""
        tools = anthropic_runnables(registry, executor=executor)
        return [Exported(tool, registry, executor) for tool in tools]

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """The runner's own loop."""
        script = MessagesScript(calls)
        runner = script.client().beta.messages.tool_runner(
            model="m",
            max_tokens=100,
            tools=[exported.native],
            messages=[{"role": "user", "content": "go"}],
        )
        await runner.until_done()
        return script.answers()


_TESTS = (
    *contract_tests(MessagesHarness),
    *contract_tests(MessagesHarness, runner_factory=Executor),
    *contract_tests(RunnerHarness, label="runner"),
    *contract_tests(RunnerHarness, runner_factory=Executor, label="runner_executor"),
)
globals().update((item.__name__, item) for item in _TESTS)
