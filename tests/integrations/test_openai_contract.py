"""OpenAI passes the contract kit over both of its APIs, with the kit's runner and the executor."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("openai")

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.schema.providers import openai
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.openai import openai_tool, openai_tools, run_tool_calls

from ._provider_harness import Exported, ProviderHarness
from ._providers import ChatScript, ResponsesScript
from .kit import contract_tests

pytestmark = pytest.mark.contract


class ChatHarness(ProviderHarness):
    """A real client's Chat Completions."""

    name = "openai"

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """A function dictionary."""
        return openai_tool(spec)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        """Every tool for OpenAI."""
        return [Exported(tool, registry, executor) for tool in openai_tools(registry)]

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """Two requests: the calls, and what became of them."""
        script = ChatScript(calls)
        client = script.client()
        messages: list[Any] = [{"role": "user", "content": "go"}]
        options = {"model": "m", "tools": [exported.native]}
        response = await client.chat.completions.create(messages=messages, **options)
        messages.append(response.choices[0].message)
        messages += await run_tool_calls(response, exported.registry, executor=exported.runner)
        await client.chat.completions.create(messages=messages, **options)
        return script.answers()

    def response(self, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
        """A completion as JSON."""
        return ChatScript().whole(calls)

    async def answered(self, exported: Exported, response: Any) -> Any:
        """The messages that answer it."""
        return await run_tool_calls(response, exported.registry, executor=exported.runner)

    def describe(self, exported: Any) -> tuple[str, str, dict[str, Any]]:
        """What the dictionary says."""
        function = exported.native["function"]
        return function["name"], function["description"], function["parameters"]

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """The neutral schema with `items` everywhere."""
        return openai(spec.json_schema())


class ResponsesHarness(ChatHarness):
    """A real client's Responses, with strict schemas."""

    checks = ChatHarness.checks - {"C12"}  # strict has no object with free keys: see its own tests

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """A strict function dictionary."""
        return openai_tool(spec, api="responses", strict=True)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        """Every tool for OpenAI."""
        tools = openai_tools(registry, api="responses", strict=True)
        return [Exported(tool, registry, executor) for tool in tools]

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """Two requests: the calls, and what became of them."""
        script = ResponsesScript(calls)
        client = script.client()
        items: list[Any] = [{"role": "user", "content": "go"}]
        options = {"model": "m", "tools": [exported.native]}
        response = await client.responses.create(input=items, **options)
        items += response.output
        items += await run_tool_calls(response, exported.registry, executor=exported.runner)
        await client.responses.create(input=items, **options)
        return script.answers()

    def response(self, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
        """A response as JSON."""
        return ResponsesScript().whole(calls)

    def describe(self, exported: Any) -> tuple[str, str, dict[str, Any]]:
        """What the dictionary says."""
        tool = exported.native
        return tool["name"], tool["description"], tool["parameters"]

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """The strict subset."""
        return openai_strict(spec.json_schema())


_TESTS = (
    *contract_tests(ChatHarness, label="chat"),
    *contract_tests(ChatHarness, runner_factory=Executor, label="chat_executor"),
    *contract_tests(ResponsesHarness, label="responses"),
    *contract_tests(ResponsesHarness, runner_factory=Executor, label="responses_executor"),
)
globals().update((item.__name__, item) for item in _TESTS)
