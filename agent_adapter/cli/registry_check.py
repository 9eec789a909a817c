"""The checks of `agent-adapter tools check`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent_adapter.core.errors import AgentAdapterError, IntegrationError

if TYPE_CHECKING:
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.integrations.base import Integration

__all__ = ["ToolFinding", "check_registry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinding:
    """One problem of one tool; an `error` fails in use, a `note` may be unexpected."""

    tool: str
    severity: Literal["error", "note"]
    problem: str
    fix: str


def check_registry(registry: ToolRegistry) -> list[ToolFinding]:
    """The problems of the tools of `registry`."""
    from agent_adapter.integrations.discovery import available_integrations

    integrations = available_integrations()
    usable = {name: each for name, each in integrations.items() if _installed(each)}
    findings: list[ToolFinding] = []
    for spec in registry:
        findings += _schema(spec)
        findings += _targets(spec, set(integrations))
        findings += _exports(spec, usable)
    return findings


def _schema(spec: ToolSpec) -> Iterator[ToolFinding]:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    from agent_adapter.core.schema.dialects import inlined

    schema = spec.json_schema()
    try:
        Draft202012Validator.check_schema(schema)
        inlined(schema)
    except SchemaError as exc:
        yield _error(spec, f"its schema is invalid: {exc.message}", "correct the schema")
    except AgentAdapterError as exc:
        yield _note(spec, str(exc), "frameworks that need schemas without $ref cannot use it")
    for name, field in schema.get("properties", {}).items():
        if isinstance(field, dict) and not field.get("description"):
            fix = "describe it in the docstring, or with Field(description=…)"
            yield _note(spec, f"the parameter {name!r} has no description", fix)


def _targets(spec: ToolSpec, known: set[str]) -> Iterator[ToolFinding]:
    unknown = sorted((spec.targets or frozenset()) - known)
    if unknown:
        problem = f"no integration has the name {', '.join(unknown)}"
        fix = f"use one of {', '.join(sorted(known))}, or install its plug-in"
        yield _error(spec, problem, fix)


def _exports(spec: ToolSpec, usable: dict[str, Integration]) -> Iterator[ToolFinding]:
    for name, integration in usable.items():
        if spec.targets is not None and name not in spec.targets:
            continue
        try:
            integration.export_tool(spec)
        except AgentAdapterError as exc:
            fix = "rename the refused name, or remove this integration from `targets`"
            yield _error(spec, f"{name} cannot export it: {exc}", fix)
        except Exception as exc:
            logging.getLogger(__name__).debug("export to %s failed", name, exc_info=exc)
            problem = f"{name} cannot export it: {type(exc).__name__}: {exc}"
            yield _error(spec, problem, "report this to the maintainers of the integration")


def _installed(integration: Integration) -> bool:
    from agent_adapter.integrations.base import check_requirements

    try:
        check_requirements(integration)
    except IntegrationError:
        return False
    return True


def _error(spec: ToolSpec, problem: str, fix: str) -> ToolFinding:
    return ToolFinding(tool=spec.name, severity="error", problem=problem, fix=fix)


def _note(spec: ToolSpec, problem: str, fix: str) -> ToolFinding:
    return ToolFinding(tool=spec.name, severity="note", problem=problem, fix=fix)
