"""Whether a suite's functions are still what their authors wrote, once they are tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_adapter import ToolRegistry
from workloads.agentdojo.tools import tool_name

__all__ = ["differences"]


def differences(suites: Mapping[str, Any], registry: ToolRegistry) -> list[str]:
    """One line for each way in which a tool's text or schema differs from AgentDojo's own."""
    return [
        f"{tool_name(name, function.name)}: {difference}"
        for name, suite in suites.items()
        for function in suite.tools
        for difference in _of(function, registry.get(tool_name(name, function.name)))
    ]


def _of(function: Any, spec: Any) -> Iterator[str]:
    ours, theirs = spec.json_schema(), function.parameters.model_json_schema()
    if _parameters(ours) != _parameters(theirs):
        yield f"parameters {_parameters(ours)}, not {_parameters(theirs)}"
    if sorted(ours.get("required", [])) != sorted(theirs.get("required", [])):
        yield f"required {ours.get('required')}, not {theirs.get('required')}"
    # AgentDojo writes its own "null" for "None" into descriptions.
    if _words(spec.description.replace("None", "null")) != _words(function.description):
        yield f"description {spec.description!r}, not {function.description!r}"
    injected = set(function.dependencies) & set(ours.get("properties", {}))
    if injected:
        yield f"{sorted(injected)} are injected and must not be in the schema"


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by name; Pydantic's generated titles and line breaks in texts do not count."""
    return {
        name: {
            key: _words(value) if key == "description" else value
            for key, value in parameter.items()
            if key != "title"
        }
        for name, parameter in schema.get("properties", {}).items()
    }


def _words(text: str) -> list[str]:
    return text.split()
