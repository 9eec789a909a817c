"""The checks of `agent-adapter tools check`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent_adapter.core.errors import AgentAdapterError, IntegrationError, ToolArgsInvalid

if TYPE_CHECKING:
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.integrations.base import Integration

_DIALECT_OF = {"openai": "openai", "anthropic": "anthropic", "google_genai": "gemini"}
"""The provider's dialect that an integration speaks; frameworks speak their model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinding:
    """One problem of one tool; an `error` fails in use, a `note` may be unexpected.

    `target` is the integration that the problem belongs to; `None` where every one has it.
    """

    tool: str
    severity: Literal["error", "note"]
    problem: str
    fix: str
    target: str | None = None


def check_registry(
    registry: ToolRegistry, targets: Iterable[str] | None = None
) -> list[ToolFinding]:
    """The problems of the tools of `registry`, with `targets` only (all installed ones: `None`)."""
    from agent_adapter.integrations.discovery import available_integrations

    integrations = available_integrations()
    wanted = set(integrations if targets is None else targets)
    usable = {
        name: each for name, each in integrations.items() if name in wanted and _installed(each)
    }
    findings: list[ToolFinding] = []
    for spec in registry:
        findings += _gate(spec)
        findings += _schema(spec)
        findings += _targets(spec, set(integrations))
        findings += _round_trip(spec)
        findings += _exports(spec, usable)
        findings += _losses(spec, usable)
    return findings


def _gate(spec: ToolSpec) -> Iterator[ToolFinding]:
    from agent_adapter.core.second_names import gated_names

    gated = sorted(gated_names(spec.fn)) if spec.confirm is False else []
    if gated:
        problem = f"it never asks, and the same function asks as {', '.join(gated)}"
        yield _note(spec, problem, "leave out confirm=False, and it asks like the other")


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
    except ValueError as exc:
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
            yield _error(spec, f"{name} cannot export it: {exc}", fix, name)
        except Exception as exc:
            logging.getLogger(__name__).debug("export to %s failed", name, exc_info=exc)
            problem = f"{name} cannot export it: {type(exc).__name__}: {exc}"
            yield _error(spec, problem, "report this to the maintainers of the integration", name)


def _round_trip(spec: ToolSpec) -> Iterator[ToolFinding]:
    """An example, checked, written as an approval would bind it, read back, and planned.

    Nothing runs: no hook, rule or function is called.
    """
    from agent_adapter.core.canonical import digest
    from agent_adapter.core.schema.examples import example
    from agent_adapter.exec.runtime import Plan

    try:
        values = spec.validate(example(spec.arguments.schema))
    except ToolArgsInvalid as exc:
        problem = f"no example of its arguments could be made: {exc.problems[0]}"
        yield _note(spec, problem, "give the parameter `examples` or a default in its schema")
        return
    try:
        again = spec.validate(json.loads(spec.dump(values)))
        same = digest(values) == digest(again)
        Plan(spec, (), None)
    except Exception as exc:
        problem = f"a call of it cannot be bound to an approval: {type(exc).__name__}: {exc}"
        yield _error(spec, problem, "use types that JSON can carry")
        return
    if not same:
        problem = "its arguments read back differently, so no approval can be bound to them"
        yield _error(spec, problem, "use types that are written as they are read")


def _losses(spec: ToolSpec, usable: Iterable[str]) -> Iterator[ToolFinding]:
    """Constraints that a provider's schema lacks; they are checked when a call arrives."""
    from agent_adapter.core.schema.dialects import breaches
    from agent_adapter.core.schema.providers import DIALECTS

    schema = spec.json_schema()
    for target in sorted(set(usable) & _DIALECT_OF.keys()):
        dialect = DIALECTS[_DIALECT_OF[target]]
        if spec.targets is not None and target not in spec.targets:
            continue
        description, shown = dialect.tool(spec.description, schema)
        fix = "no action needed: the call is validated with the whole schema"
        if description != spec.description:
            problem = f"{target} shows only {len(description)} characters of the description"
            yield _note(spec, problem, "put what matters first", target)
        lost = sorted(schema.keys() - shown.keys() - {"$defs", "title"})
        if lost:
            yield _note(spec, f"the schema for {target} lacks {', '.join(lost)}", fix, target)
        renamed = [name for name in schema.get("properties", {}) if name not in shown["properties"]]
        if renamed:
            problem = f"{target} sees another name for the parameter {', '.join(renamed)}"
            yield _note(spec, problem, fix, target)
        for breach in breaches(dialect.limits, spec.name, description, shown):
            yield _error(spec, f"{target} refuses it: {breach}", "change the schema", target)


def _installed(integration: Integration) -> bool:
    from agent_adapter.integrations.base import check_requirements

    try:
        check_requirements(integration)
    except IntegrationError:
        return False
    return True


def _error(spec: ToolSpec, problem: str, fix: str, target: str | None = None) -> ToolFinding:
    return ToolFinding(tool=spec.name, severity="error", problem=problem, fix=fix, target=target)


def _note(spec: ToolSpec, problem: str, fix: str, target: str | None = None) -> ToolFinding:
    return ToolFinding(tool=spec.name, severity="note", problem=problem, fix=fix, target=target)
