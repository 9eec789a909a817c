"""A harness that keeps every clause of the contract, for tests that break one clause each."""

# what each method of a harness does is said by its protocol

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.results import plain_result
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.integrations.base import IntegrationBase

from ..fakes.approval import FakeApproval
from ._kit_support import request_for


@dataclass
class Call:
    """A native call."""

    id: str
    arguments: dict[str, Any]
    run: str | None = None


@dataclass
class Native:
    """A native tool: what the model sees, and a function of a call."""

    name: str
    description: str
    schema: dict[str, Any]
    run: Callable[[Call], Awaitable[Any]]


def call_in(state: str) -> Call:
    """The call that a serialised pause holds."""
    kept = json.loads(state)
    return Call(kept["id"], kept["args"], kept["run"])


class SoundIntegration(IntegrationBase):
    """Exports `Native` tools."""

    name = "demo"
    call_id_fields = ("id",)

    def bind_context(self, native: Any) -> ToolContext:
        ctx = super().bind_context(native)
        ctx.run_id = native.run
        return ctx

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Native:
        assert executor is not None

        async def run(call: Call) -> Any:
            return await self._run_bound(call, spec, call.arguments, executor)

        return Native(spec.name, spec.description, spec.json_schema(), run)


class SoundHarness:
    """Every optional member too; broken harnesses override one method."""

    name = "demo"
    edits_supported = True
    approval = "port"
    port_asks = 1
    checks = frozenset({"C9", "C10", "C11", "C12", "C13", "C14", "C15"})
    integration: IntegrationBase = SoundIntegration()

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        return self.integration.export_tool(spec, executor=executor)

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        return [self.export(spec, executor) for spec in registry.for_target(self.name)]

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        return await native.run(Call(call_id, args))

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        turn = (self.call(native, args, call_id=call_id) for call_id, args in calls)
        return list(await asyncio.gather(*turn))

    async def paused(self, native: Any, args: dict[str, Any], *, call_id: str) -> str:
        return json.dumps({"run": "run_1", "id": call_id, "args": args, "approved": False})

    async def tampered(self, native: Any, state: str, kind: str) -> str:
        changes: dict[str, Any] = {
            "arguments": {"args": {"a": 9, "b": 9}},
            "call-id": {"id": "call_other"},
            "approved": {"approved": True},
            "run": {"run": "run_2"},
        }
        return json.dumps(json.loads(state) | changes[kind])

    async def resumed(self, native: Any, state: str) -> Any:
        return await native.run(call_in(state))

    def value(self, raw: Any) -> Any:
        return raw

    def shown(self, raw: Any) -> str:
        return plain_result(raw)

    def is_error(self, raw: Any) -> bool:
        return isinstance(raw, dict) and set(raw) == {"error"}

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        return await self.call(native, args, call_id="call_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        return native.name, native.description, native.schema

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        return spec.json_schema()


class GatedIntegration(SoundIntegration):
    """A framework with a gate of its own, which asks `port` before the tool is reached."""

    def __init__(self) -> None:
        self.port = FakeApproval()

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Native:
        assert executor is not None

        async def run(call: Call) -> Any:
            ctx = self._bind(call)
            if spec.confirm:
                ctx.approval = await self.port.request(request_for(spec, call.arguments, ctx))
            decided = _Decided(ctx.approval, executor)
            return await self._run_bound(call, spec, call.arguments, decided)

        return Native(spec.name, spec.description, spec.json_schema(), run)


class _Decided:
    def __init__(self, decision: Any, runner: ToolRunner) -> None:
        self.decision = decision
        self.runner = runner

    async def run_spec(self, spec: Any, args: Any, ctx: Any = None, **kwargs: Any) -> Any:
        ctx.approval = self.decision
        return await self.runner.run_spec(spec, args, ctx, **kwargs)


class GatedHarness(SoundHarness):
    """A native gate that is built on an `ApprovalPort`."""

    approval = "native"
    native_uses_port = True

    def __init__(self) -> None:
        self.integration = GatedIntegration()

    def approval_port(self) -> FakeApproval:
        port: FakeApproval = self.integration.port  # type: ignore[attr-defined]  # set above
        return port


class ThreadedHarness(SoundHarness):
    """A sync-only bridge: each call has a thread and a loop of its own, and no id."""

    cancels_tool = False
    native_call_ids = False

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        return await asyncio.to_thread(lambda: asyncio.run(native.run(Call("", args))))


class SequentialHarness(SoundHarness):
    """A framework that runs the calls of one turn one after the other."""

    parallel = False

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        return [await self.call(native, args, call_id=call_id) for call_id, args in calls]
