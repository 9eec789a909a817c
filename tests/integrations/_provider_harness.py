"""What the harnesses of the model providers share: one conversation around a scripted client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision


@dataclass(frozen=True, slots=True)
class Exported:
    """A tool as the provider takes it, with the registry and the runner of its calls."""

    native: Any
    registry: ToolRegistry
    runner: ToolRunner

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.registry.names()[0]


class ProviderHarness:
    """Drives a provider's client; a subclass says how one conversation goes."""

    name: str
    edits_supported = True
    approval = "port"
    checks: ClassVar[frozenset[str]] = frozenset({"C9", "C10", "C12", "C13", "C14"})

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Exported:
        """The tool alone in a registry."""
        registry = ToolRegistry()
        registry.add(spec)
        return Exported(self.native(spec, executor), registry, executor)

    def native(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The tool as the integration exports it."""
        raise NotImplementedError

    async def talk(self, exported: Exported, calls: list[tuple[str, str, Any]]) -> dict[str, str]:
        """A conversation whose first turn makes `calls`; what the model read, by call id."""
        raise NotImplementedError

    async def call(self, exported: Exported, args: dict[str, Any], *, call_id: str) -> str:
        """One call; what the model read."""
        return (await self.talk(exported, [(call_id, exported.name, args)]))[call_id]

    async def call_many(
        self, exported: Exported, calls: list[tuple[str, dict[str, Any]]]
    ) -> list[str]:
        """Several calls of one turn."""
        read = await self.talk(exported, [(i, exported.name, args) for i, args in calls])
        return [read[call_id] for call_id, _ in calls]

    def value(self, raw: str) -> Any:
        """Results are JSON text."""
        return json.loads(raw)

    def is_error(self, raw: Any) -> bool:
        """The one error that a model reads."""
        return isinstance(raw, str) and raw.startswith('{"error": {"kind"')

    def shown(self, raw: str) -> str:
        """What the model read."""
        return raw

    async def approve_flow(
        self, exported: Exported, args: dict[str, Any], decision: ApprovalDecision
    ) -> str:
        """One call; the executor's port decides."""
        return await self.call(exported, args, call_id="call_provider_approval")

    def describe(self, exported: Any) -> tuple[str, str, Mapping[str, Any]]:
        """Name, description and schema of the exported tool."""
        raise NotImplementedError
