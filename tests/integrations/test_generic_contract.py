"""The plain loop passes the contract kit over every client it drives, streaming and not."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.generic import generic_tool, generic_tools, run_tool_loop

from ..fakes.approval import FakeApproval
from ._provider_harness import CHANGES, Exported, ProviderHarness, rewritten
from ._providers import ChatScript, GeminiScript, MessagesScript, ResponsesScript
from .kit import contract_tests

pytestmark = pytest.mark.contract


class LoopHarness(ProviderHarness):
    """Chat Completions in one piece."""

    name = "generic"
    script: Any = ChatScript
    options: dict[str, Any] = {}  # noqa: RUF012  # replaced by subclasses, never changed
    cannot_tell = MappingProxyType(
        {"pending": "the loop pauses: the model is asked on when the person has decided"}
    )

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """A tool for a loop of one's own; the loop makes the provider's form of it."""
        return generic_tool(spec, executor=executor)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        """Every tool for no framework."""
        tools = generic_tools(registry, executor=executor)
        return [Exported(tool, registry, executor) for tool in tools]

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """One loop."""
        script = self.script(calls)
        result = await run_tool_loop(
            script.client(),
            exported.registry,
            model="m",
            messages="go",
            executor=exported.runner,
            **self.options,
        )
        assert (result.status, result.text, result.turns) == ("done", "done", 2)
        return {call_id: self.read(text) for call_id, text in script.answers().items()}

    async def paused(self, exported: Exported, args: dict[str, Any], *, call_id: str) -> Any:
        """A loop that stopped for a person: its conversation and run, as JSON."""
        result = await self.loop(exported, "go", [(call_id, exported.name, args)])
        assert result.status == "paused"
        kept: dict[str, Any] = json.loads(
            json.dumps({"messages": result.messages, "run_id": result.run_id})
        )
        return kept

    async def tampered(self, exported: Exported, state: Any, kind: str) -> Any:
        """Whoever holds the JSON can change all of it."""
        if kind == "run":
            return state | {"run_id": "run_other"}
        return rewritten(state, **CHANGES[kind])

    async def resumed(self, exported: Exported, state: Any) -> Any:
        """The loop goes on from it."""
        return await self.loop(exported, state["messages"], run_id=state["run_id"])

    async def loop(self, exported: Exported, messages: Any, *turns: Any, **more: Any) -> Any:
        """One loop over a script."""
        given = {"messages": messages, "executor": exported.runner, "model": "m"}
        client = self.script(*turns).client()
        return await run_tool_loop(client, exported.registry, **given, **self.options, **more)

    def read(self, text: str) -> str:
        """What the model read of a result."""
        return text

    def describe(self, exported: Any) -> tuple[str, str, dict[str, Any]]:
        """What the tool says of itself."""
        tool = exported.native
        return tool.name, tool.description, tool.parameters

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """The neutral schema."""
        return spec.json_schema()


class StreamedChat(LoopHarness):
    """Chat Completions in pieces."""

    options = {"stream": True}  # noqa: RUF012


class GatedResponses(LoopHarness):
    """Responses, with a port of the loop's own."""

    script = ResponsesScript
    approval = "native"
    native_uses_port = True

    def __init__(self) -> None:
        self._port = FakeApproval()
        self.options = {"api": "responses", "approval": self._port}

    def approval_port(self) -> FakeApproval:
        """The loop's port."""
        return self._port


class StreamedResponses(LoopHarness):
    """Responses in pieces."""

    script = ResponsesScript
    options = {"api": "responses", "stream": True}  # noqa: RUF012


class Messages(LoopHarness):
    """Anthropic in one piece."""

    script = MessagesScript


class StreamedMessages(LoopHarness):
    """Anthropic in pieces."""

    script = MessagesScript
    options = {"stream": True}  # noqa: RUF012


class Contents(LoopHarness):
    """Gemini in one piece."""

    script = GeminiScript

    def read(self, text: str) -> str:
        """The output alone, or the error as it is."""
        response = json.loads(text)
        return json.dumps(response.get("output", response) if "error" not in response else response)


class StreamedContents(Contents):
    """Gemini in pieces."""

    options = {"stream": True}  # noqa: RUF012


_HARNESSES = {
    "chat": LoopHarness,
    "chat_streamed": StreamedChat,
    "responses_gated": GatedResponses,
    "responses_streamed": StreamedResponses,
    "messages": Messages,
    "messages_streamed": StreamedMessages,
    "contents": Contents,
    "contents_streamed": StreamedContents,
}
_TESTS = [
    item
    for label, harness in _HARNESSES.items()
    for item in (
        *contract_tests(harness, label=label),
        *contract_tests(harness, runner_factory=Executor, label=f"{label}_executor"),
    )
]
globals().update((item.__name__, item) for item in _TESTS)
