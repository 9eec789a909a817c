"""What of the pipeline one tool needs, worked out once per executor and tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RunLimits
from agent_adapter.exec.hooks import bound_hooks

__all__ = ["Plan"]


class Plan:
    """The steps that have work for one tool.

    `begins` says that an intent must be durable before the function is entered, `looks_up` that the
    call's identity is asked of the store first, `contexts` are the parameters that take the
    context where nothing else is injected (`None` otherwise), `flat` means that every argument
    is a scalar.
    """

    __slots__ = ("after", "before", "begins", "contexts", "flat", "looks_up", "marks", "spec")

    def __init__(self, spec: ToolSpec, hooks: Iterable[Any], limits: RunLimits | None) -> None:
        hooks = tuple(hooks)
        self.spec = spec
        self.before = bound_hooks(hooks, spec, "before")
        self.after = bound_hooks(hooks, spec, "after")
        self.begins = spec.effects == "write" or limits is not None
        self.looks_up = spec.effects == "idempotent"
        self.flat = not spec.secrets and _is_flat(spec)
        self.marks = spec.trust == "untrusted"
        only_contexts = all(injection.kind == "context" for injection in spec.injected)
        self.contexts = tuple(i.name for i in spec.injected) if only_contexts else None


def _is_flat(spec: ToolSpec) -> bool:
    parts = spec.json_schema().get("properties", {}).values()
    kinds = {part.get("type") for part in parts}
    return spec.plain and kinds <= {"string", "integer", "number", "boolean", "null"}
