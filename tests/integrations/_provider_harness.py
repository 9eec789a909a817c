"""What the harnesses of the model providers share: one conversation around a scripted client."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision

from ._kit_support import outcome_of

RESPONSE_IDS = ("id", "response_id")
CHANGES: dict[str, dict[str, Any]] = {
    "arguments": {"args": {"a": 9, "b": 9}},
    "call-id": {"call_id": "call_other"},
    "approved": {"mark": True},
}
"""How each kind of tampering changes the calls in a kept response or conversation."""


def rewritten(
    node: Any, *, args: Any = None, call_id: str | None = None, mark: bool = False
) -> Any:
    """A copy of JSON in which every call of any provider has these arguments, id, or mark."""
    if isinstance(node, list):
        return [rewritten(item, args=args, call_id=call_id, mark=mark) for item in node]
    if not isinstance(node, dict):
        return node
    made = {k: rewritten(v, args=args, call_id=call_id, mark=mark) for k, v in node.items()}
    for key in ("arguments", "input", "args"):
        if args is not None and "name" in made and key in made:
            made[key] = json.dumps(args) if isinstance(made[key], str) else args
    is_call = made.get("type") in ("function", "function_call", "tool_use") or "args" in made
    if is_call and call_id is not None:
        made["call_id" if "call_id" in made else "id"] = call_id
    if is_call and mark:
        made |= {"approved": True, "confirmed": True}
    return made


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
    checks: ClassVar[frozenset[str]] = frozenset({"C9", "C10", "C11", "C12", "C13", "C14", "C15"})

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

    async def answered(self, exported: Exported, response: Any) -> Any:
        """What the integration answers to a response that was kept as JSON."""
        raise NotImplementedError

    def response(self, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
        """A response with `calls`, as JSON."""
        raise NotImplementedError

    async def paused(self, exported: Exported, args: dict[str, Any], *, call_id: str) -> Any:
        """A response whose call waits for a person; kept as JSON meanwhile."""
        state = self.response([(call_id, exported.name, args)])
        await outcome_of(self.answered(exported, copy.deepcopy(state)))
        return state

    async def tampered(self, exported: Exported, state: Any, kind: str) -> Any:
        """Whoever holds the JSON can change all of it."""
        if kind == "run":
            return {key: "other" if key in RESPONSE_IDS else state[key] for key in state}
        return rewritten(state, **CHANGES[kind])

    async def resumed(self, exported: Exported, state: Any) -> Any:
        """The response is answered again."""
        return await self.answered(exported, copy.deepcopy(state))

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
