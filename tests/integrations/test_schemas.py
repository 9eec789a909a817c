"""Rows S4, S6, S7, S8 and S13 of the table of schemas, through every target."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("anthropic")
pytest.importorskip("autogen_agentchat")
pytest.importorskip("fastmcp")
pytest.importorskip("google.genai")
pytest.importorskip("langchain")
pytest.importorskip("langgraph")
pytest.importorskip("mcp")
pytest.importorskip("openai")

import agent_adapter as aa
from agent_adapter.integrations.discovery import get_integration

from ._targets import TARGETS
from .kit import harness_session

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

ROOT_UNION: dict[str, Any] = {
    "type": "object",
    "anyOf": [
        {"properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
    ],
}
OLDER: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        "list": {"type": ["array", "null"]},
        "mode": {"enum": ["", "fast"]},
        "default": {"$ref": "#/definitions/Place"},
        "any": True,
    },
    "required": ["pair", "unknown"],
    "definitions": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
NAMED: dict[str, Any] = {
    "type": "object",
    "properties": {"$filter": {"type": "string"}, "año": {"type": "integer"}},
    "required": ["$filter"],
}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "S4 two types": (
        {"type": "object", "properties": {"p": {"type": ["string", "null"]}}},
        {"p": "x"},
    ),
    "S4 true": ({"type": "object", "properties": {"p": True}}, {"p": "x"}),
    "S6 id": (ROOT_UNION, {"id": "a"}),
    "S6 name": (ROOT_UNION, {"name": "b"}),
    "S6 reference": (
        {"$ref": "#/definitions/R", "definitions": {"R": ROOT_UNION["anyOf"][0]}},
        {"id": "a"},
    ),
    "S7 draft 7": (
        OLDER,
        {"pair": ["a", 1], "mode": "", "unknown": 3, "default": {"city": "Bonn"}, "any": [1]},
    ),
    "S8 names": (NAMED, {"$filter": "x", "año": 2020}),
}


async def give_back(**arguments: Any) -> dict[str, Any]:
    """Gives back what it took."""
    return arguments


def tool(name: str, schema: dict[str, Any], **policy: Any) -> aa.ToolSpec:
    """A foreign tool that gives back its arguments."""
    return aa.ToolSpec.from_json_schema(name, "Gives back.", schema, give_back, **policy)


def memory() -> aa.Executor:
    """An executor that keeps nothing."""
    return aa.Executor(store=aa.open_store("memory://"))


async def called(target: str, spec: aa.ToolSpec, args: dict[str, Any]) -> Any:
    """The value of one call through the framework's own path."""
    async with harness_session(TARGETS[target]) as harness:
        native = harness.export(spec, memory())
        raw = await harness.call(native, json.loads(json.dumps(args)), call_id="call_schema")
        assert not harness.is_error(raw), raw
        value = harness.value(raw)
        return json.loads(value) if isinstance(value, str) else value


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", TARGETS)
async def test_foreign_schema_works_everywhere(target: str, case: str) -> None:
    """S4, S6, S7, S8: exported, called, and given its arguments as they were sent."""
    schema, args = CASES[case]
    assert await called(target, tool("foreign", schema), args) == args


@pytest.mark.parametrize("target", TARGETS)
async def test_s13_null_for_an_optional_parameter_uses_its_default(target: str) -> None:
    """A model that sends null for what it does not know is understood."""

    def greet(name: str, lang: str = "en") -> dict[str, str]:
        """Greets."""
        return {"name": name, "lang": lang}

    spec = aa.ToolSpec.from_function(greet)
    args = {"name": "ann", "lang": None}
    assert await called(target, spec, args) == {"name": "ann", "lang": "en"}


@pytest.mark.parametrize("target", TARGETS)
async def test_s8_one_bad_tool_costs_no_other(
    target: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """99 of 100 tools are exported, and a warning names the one that is not."""
    registry = aa.ToolRegistry()
    for number in range(100):
        registry.add(tool(f"tool_{number}", NAMED))
    integration: Any = get_integration(target)
    one = integration.export_tool

    def failing(spec: aa.ToolSpec, **options: Any) -> Any:
        if spec.name == "tool_42":
            raise TypeError("the framework cannot")
        return one(spec, **options)

    monkeypatch.setattr(integration, "export_tool", failing, raising=False)
    with caplog.at_level(logging.WARNING):
        assert len(integration.export_tools(registry)) == 99
    assert f"the tool 'tool_42' is not exported to {target}: TypeError" in caplog.text
    with pytest.raises(TypeError):
        integration.export_tools(registry, on_error="raise")


async def test_s8_server_with_one_bad_tool_keeps_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A pattern that no engine bounds, long names, and names in Chinese."""
    from mcp.server import Server
    from mcp_types import ListToolsResult, Tool

    from agent_adapter.integrations.mcp import import_tools

    long = "x" * 64
    names = ["bad", "letters", "文件读取", "文件写入", long + "a", long + "b", "old"]
    parts = {"bad": {"pattern": r"(a)\1"}, "letters": {"pattern": r"^\p{L}+$"}}

    async def listed(*_: Any) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    input_schema={"type": "object", "properties": {"p": parts.get(name, {})}},
                )
                for name in names
            ]
        )

    server: Any = Server("names", on_list_tools=listed)
    with caplog.at_level(logging.WARNING):
        specs = await import_tools(server, name="s", pins=False, names={"old": "new"})
    assert len({spec.name for spec in specs}) == 6
    assert {"s_letters", "new"} < {spec.name for spec in specs}
    assert "the tool 'bad' is not imported from s: tool 's_bad': its JSON Schema" in caplog.text
