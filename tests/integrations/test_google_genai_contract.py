"""Google GenAI passes the contract kit, with call ids and without."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("google.genai")

from google.genai import types

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.schema.providers import gemini
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.google_genai import (
    function_responses,
    google_genai_declaration,
    google_genai_tools,
)

from ._provider_harness import Exported, ProviderHarness
from ._providers import GeminiScript
from .kit import contract_tests

pytestmark = pytest.mark.contract


class GeminiHarness(ProviderHarness):
    """A real client's content API."""

    name = "google_genai"
    ids = True

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """A declaration."""
        return google_genai_declaration(spec)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        """Every tool for Gemini."""
        (tool,) = google_genai_tools(registry)
        declared = tool.function_declarations or []
        return [Exported(declaration, registry, executor) for declaration in declared]

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """Two requests: the calls, and what became of them."""
        script = GeminiScript(calls, ids=self.ids)
        models = script.client().aio.models
        contents: list[Any] = [types.UserContent("go")]
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[exported.native])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        response = await models.generate_content(model="m", contents=contents, config=config)
        contents.append(response.candidates[0].content)
        parts = await function_responses(response, exported.registry, executor=exported.runner)
        contents.append(types.Content(role="user", parts=parts))
        await models.generate_content(model="m", contents=contents, config=config)
        read = script.responses()
        assert [r.get("id") for r in read] == [i if self.ids else None for i, _, _ in calls]
        return {i: _text(r["response"]) for (i, _, _), r in zip(calls, read, strict=True)}

    def response(self, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
        """A response as JSON."""
        raw = GeminiScript(ids=self.ids).whole(calls)
        kept = types.GenerateContentResponse.model_validate(raw)
        dumped: dict[str, Any] = kept.model_dump(mode="json", exclude_none=True)
        return dumped

    async def answered(self, exported: Exported, response: Any) -> Any:
        """The parts that answer it."""
        return await function_responses(response, exported.registry, executor=exported.runner)

    def describe(self, exported: Any) -> tuple[str, str, dict[str, Any]]:
        """What the declaration says."""
        declared = exported.native
        return declared.name, declared.description, declared.parameters_json_schema

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """Gemini's subset."""
        return gemini(spec.json_schema())


def _text(response: dict[str, Any]) -> str:
    """The output alone, or the error as it is."""
    return json.dumps(response.get("output", response), ensure_ascii=False)


class NamelessHarness(GeminiHarness):
    """A backend that gives calls no ids."""

    native_call_ids = False
    ids = False


_TESTS = (
    *contract_tests(GeminiHarness),
    *contract_tests(GeminiHarness, runner_factory=Executor),
    *contract_tests(NamelessHarness, label="nameless"),
    *contract_tests(NamelessHarness, runner_factory=Executor, label="nameless_executor"),
)
globals().update((item.__name__, item) for item in _TESTS)
