"""What must hold of every foreign tool, without a framework: nothing is lost on the way."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.names import aliases, fitting_name
from agent_adapter.core.schema.dialects import breaches
from agent_adapter.core.schema.examples import example
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.schema.providers import DIALECTS
from agent_adapter.core.tool import ToolSpec
from workloads.corpora.sources import ForeignTool

_DEEPEST = 12
_SCALARS = ("string", "integer", "number", "boolean", "null")
_BRANCHES = ("anyOf", "oneOf", "allOf")

Path = tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Findings:
    """What was found.

    `quarantined`, `strict`, `impossible` (nothing fits the schema) and `contradictions` (the data's
    own) are listed with their reasons; the others must be empty.
    """

    quarantined: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    breaches: dict[str, str] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    strict: dict[str, str] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    contradictions: list[dict[str, str]] = field(default_factory=list)
    disagreements: list[dict[str, str]] = field(default_factory=list)
    emitted: int = 0
    accepted_calls: int = 0

    @property
    def problems(self) -> int:
        """How many findings must not be."""
        must_be_empty = (self.lost, self.breaches, self.raw, self.examples, self.disagreements)
        return sum(map(len, must_be_empty))


async def _given(**arguments: Any) -> dict[str, Any]:
    return arguments


def imported(tool: ForeignTool, findings: Findings) -> ToolSpec | None:
    """`tool` as a spec that gives back its arguments; `None` where it is refused, with why."""
    name, before = fitting_name(tool.name), copy.deepcopy(tool.schema)
    try:
        text = tool.description or f"The tool {tool.name}."
        spec = ToolSpec.from_json_schema(name, text, tool.schema, _given, effects="read")
    except ToolDefinitionError as exc:
        findings.quarantined[tool.place] = str(exc)
        return None
    except Exception as exc:
        findings.raw[tool.place] = f"import: {type(exc).__name__}: {exc}"
        return None
    if tool.schema != before:
        findings.raw[tool.place] = "import: it changed the schema that it was given"
    return spec


def check(tool: ForeignTool, spec: ToolSpec, findings: Findings) -> dict[str, Any] | None:
    """Every dialect of one tool, its expected calls, and an example that fits it."""
    expected = set(paths(tool.schema))
    for name, dialect in DIALECTS.items():
        place = f"{tool.place} for {name}"
        try:
            text, shown = dialect.tool(spec.description, spec.json_schema())
            refused = breaches(dialect.limits, spec.name, text, shown)
        except Exception as exc:
            findings.raw[place] = f"{type(exc).__name__}: {exc}"
            continue
        findings.emitted += 1
        lost = expected - set(paths(shown))
        if lost:
            findings.lost[place] = ", ".join(sorted(map(".".join, lost))[:9])
        if refused:
            findings.breaches[place] = "; ".join(refused[:5])
    _strict(tool, spec, findings)
    _calls(tool, spec, findings)
    return _example(tool, spec, findings)


def _strict(tool: ForeignTool, spec: ToolSpec, findings: Findings) -> None:
    """Strict may refuse a schema; what it takes has every property, all of them required."""
    try:
        shown = openai_strict(spec.json_schema())
    except ValueError as exc:
        findings.strict[tool.place] = str(exc)
        return
    except Exception as exc:
        findings.raw[f"{tool.place} for strict"] = f"{type(exc).__name__}: {exc}"
        return
    findings.emitted += 1
    lost = set(paths(tool.schema)) - set(paths(shown))
    if lost:
        findings.lost[f"{tool.place} for strict"] = ", ".join(sorted(map(".".join, lost))[:9])


def _example(tool: ForeignTool, spec: ToolSpec, findings: Findings) -> dict[str, Any] | None:
    made: dict[str, Any] = example(spec.arguments.schema)
    try:
        spec.validate(made)
    except ToolArgsInvalid as exc:
        found = findings.impossible if _is_impossible(tool.schema) else findings.examples
        found[tool.place] = f"{made!r}: {exc.problems[0]}"[:300]
        return None
    except Exception as exc:
        findings.raw[f"{tool.place}, example"] = f"{type(exc).__name__}: {exc}"
        return None
    return made


def _is_impossible(schema: Mapping[str, Any]) -> bool:
    """Whether a required argument lists values of which none is of its type."""
    parts = [schema.get("properties", {}).get(name, {}) for name in schema.get("required", ())]
    return any(
        "enum" in part and not any(map(Draft202012Validator(part).is_valid, part["enum"]))
        for part in parts
    )


def _calls(tool: ForeignTool, spec: ToolSpec, findings: Findings) -> None:
    """The expected calls; a refused one must contradict its own schema by another judge, too."""
    judge = Draft202012Validator(dict(tool.schema))
    for call in tool.calls:
        try:
            spec.validate(call)
            findings.accepted_calls += 1
            continue
        except ToolArgsInvalid as exc:
            reason = exc.problems[0]
        except Exception as exc:
            findings.raw[f"{tool.place}, call"] = f"{type(exc).__name__}: {exc}"
            continue
        line = {"tool": tool.place, "arguments": repr(call)[:200], "reason": reason[:200]}
        agrees = any(judge.iter_errors(dict(call)))
        (findings.contradictions if agrees else findings.disagreements).append(line)


def paths(root: Mapping[str, Any]) -> Iterator[Path]:
    """Where the properties of any draft's schema are; a name that some provider refuses by alias.

    Written without the product's own walk of a schema, which it judges.
    """
    yield from _below(root, root, (), ())


def _below(node: Any, root: Mapping[str, Any], path: Path, seen: Path) -> Iterator[Path]:
    if not isinstance(node, Mapping) or len(path) > _DEEPEST:
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        yield from _below(_target(reference, root), root, path, (*seen, reference))
    properties = node.get("properties")
    if isinstance(properties, Mapping) and node.get("type") not in _SCALARS:
        other = aliases(properties)
        for name, part in properties.items():
            inner = (*path, str(other.get(name, name)))
            yield inner
            yield from _below(part, root, inner, seen)
    for keyword in _BRANCHES:
        for part in node.get(keyword, ()):
            yield from _below(part, root, path, seen)
    items = node.get("items")
    listed = items if isinstance(items, list) else [items]
    for part in [*listed, *node.get("prefixItems", ())]:
        yield from _below(part, root, (*path, "[]"), seen)
    yield from _below(node.get("additionalProperties"), root, (*path, "*"), seen)


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)]
        else:
            node = node.get(name, {}) if isinstance(node, Mapping) else {}
    return node
