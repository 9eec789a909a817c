"""The demo plug-in keeps the contract, with the kit's runner and with the executor."""

# ruff: noqa: D102  # what each method of a harness does is said by its protocol

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.results import plain_result
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from tests.integrations._demo import demo, demo_on_path
from tests.integrations.kit import contract_tests


@pytest.fixture(scope="module", autouse=True)
def demo_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The plug-in can be found through its entry point."""
    with demo_on_path(tmp_path_factory.mktemp("metadata")):
        yield


class DemoHarness:
    """Drives the demo framework for the contract kit."""

    name = "demo"
    edits_supported = True
    approval = "port"

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        return demo().INTEGRATION.export_tool(spec, executor=executor)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        return await native(demo().DemoCall(id=call_id, arguments=args))

    def value(self, raw: Any) -> Any:
        return raw

    def is_error(self, raw: Any) -> bool:
        return isinstance(raw, dict) and set(raw) == {"error"}

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        return await self.call(native, args, call_id="call_demo_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        return native.name, native.description, native.parameters

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        return spec.json_schema()


class WideDemoHarness(DemoHarness):
    """Declares every further check, and every optional member that the demo can have."""

    port_asks = 1
    checks = frozenset({"C9", "C10", "C12", "C13", "C14", "C15"})

    def export_all(self, registry: Any, executor: ToolRunner) -> list[Any]:
        return list(demo().INTEGRATION.export_tools(registry, executor=executor))

    def shown(self, raw: Any) -> str:
        return plain_result(raw)

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        results: dict[str, Any] = {}

        async def one(call_id: str, args: dict[str, Any]) -> None:
            results[call_id] = await self.call(native, args, call_id=call_id)

        async with anyio.create_task_group() as group:
            for call_id, args in calls:
                group.start_soon(one, call_id, args)
        return [results[call_id] for call_id, _ in calls]


globals().update((item.__name__, item) for item in contract_tests(DemoHarness))
globals().update(
    (item.__name__, item) for item in contract_tests(DemoHarness, runner_factory=Executor)
)
globals().update((item.__name__, item) for item in contract_tests(WideDemoHarness, label="wide"))
globals().update(
    (item.__name__, item)
    for item in contract_tests(WideDemoHarness, runner_factory=Executor, label="wide_executor")
)
