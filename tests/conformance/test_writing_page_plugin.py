"""A plug-in of somebody else's: written, registered, called, approved."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ApprovalDenied
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.base import Integration, IntegrationBase
from agent_adapter.integrations.discovery import get_integration
from tests.fakes.approval import FakeApproval
from tests.integrations._demo import PLUGIN, demo, demo_on_path
from tests.integrations.kit import FakeRunner

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def demo_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The plug-in can be found through its entry point."""
    with demo_on_path(tmp_path_factory.mktemp("metadata")):
        yield


@pytest.fixture
def spec() -> ToolSpec:
    """A tool that asks before it runs, and tells its call id."""
    registry = ToolRegistry()

    @registry.tool(confirm=True, effects="read")
    def lookup(order_id: str, ctx: ToolContext) -> str:
        """Looks an order up."""
        return f"{order_id} by {ctx.call_id}"

    return registry.get("lookup")


def call(**fields: Any) -> Any:
    """A native call of `lookup`."""
    return demo().DemoCall(id="call_1", arguments={"order_id": "A1"}, **fields)


def test_the_plugin_registers_itself() -> None:
    """`demo = "demo_integration:INTEGRATION"` in the group is all that the adapter needs."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
    entries = project["entry-points"]["agent_adapter.integrations"]
    assert entries == {"demo": "demo_integration:INTEGRATION"}
    assert get_integration("demo") is demo().INTEGRATION
    assert isinstance(demo().INTEGRATION, Integration)


def test_the_tool_shows_name_description_and_schema(spec: ToolSpec) -> None:
    """A `DemoTool` has what a model sees, under the framework's own names."""
    native = demo().INTEGRATION.export_tool(spec)
    assert (native.name, native.description) == ("lookup", "Looks an order up.")
    assert native.parameters == spec.json_schema()


def test_without_an_executor_the_default_one_runs_it(spec: ToolSpec) -> None:
    """`executor=None` is `runner_for(None)`: one default executor per process."""
    native = demo().INTEGRATION.export_tool(spec)
    assert native.runner is runner_for(None)
    assert isinstance(native.runner, Executor)
    runner = FakeRunner()
    assert demo().INTEGRATION.export_tool(spec, executor=runner).runner is runner
    assert runner_for(runner) is runner


async def test_a_call_is_bound_and_run(spec: ToolSpec) -> None:
    """The runner gets the spec, the arguments and the native id, as context and as `call_id`."""
    runner = FakeRunner(approval=FakeApproval(ApprovalDecision.approve()))
    native = demo().INTEGRATION.export_tool(spec, executor=runner)
    assert await native(call()) == "A1 by call_1"
    (seen,) = runner.calls
    assert (seen.spec, seen.args, seen.call_id) == (spec, {"order_id": "A1"}, "call_1")
    assert seen.ctx is not None and seen.ctx.call_id == "call_1"


async def test_a_framework_without_an_error_channel_gets_a_result(spec: ToolSpec) -> None:
    """No channel for tool errors: the five visible errors are `{"error": {kind, message}}`."""
    native = demo().INTEGRATION.export_tool(spec, executor=Executor())
    raw = await native(demo().DemoCall(id="call_1", arguments={"order_id": 7}))
    assert raw["error"]["kind"] == "tool-args-invalid"
    assert "order_id" in raw["error"]["message"]


async def test_a_framework_with_a_gate_skips_the_port(spec: ToolSpec) -> None:
    """Its own gate decides: the decision in `ctx.approval` counts and the port is not asked."""
    port = FakeApproval()
    native = demo().INTEGRATION.export_tool(spec, executor=Executor(approval=port))
    approved = ApprovalDecision.approve(reviewer="gate")
    assert await native(call(approval=approved)) == "A1 by call_1"
    edited = ApprovalDecision.approve(reviewer="gate", arguments={"order_id": "B2"})
    assert await native(call(approval=edited)) == "B2 by call_1"
    denied = ApprovalDecision.deny(reviewer="gate", reason="not today")
    raw = await native(call(approval=denied))
    assert raw["error"]["kind"] == "approval-denied"
    assert "not today" in raw["error"]["message"]
    assert port.requests == []


async def test_a_framework_without_a_gate_asks_the_port(spec: ToolSpec) -> None:
    """It has none: `bind_approval` is `None` and the executor asks its `ApprovalPort`."""
    port = FakeApproval(ApprovalDecision.approve(reviewer="port"))
    assert demo().INTEGRATION.bind_approval(port) is None
    native = demo().INTEGRATION.export_tool(spec, executor=Executor(approval=port))
    assert await native(call()) == "A1 by call_1"
    assert [request.tool for request in port.requests] == ["lookup"]


async def test_a_decision_that_no_integration_bound_is_ignored(spec: ToolSpec) -> None:
    """A decision in a hand-made context is nobody's: without a port the call is denied."""
    ctx = ToolContext(call_id="call_1", approval=ApprovalDecision.approve(reviewer="me"))
    with pytest.raises(ApprovalDenied):
        await Executor().run_spec(spec, {"order_id": "A1"}, ctx)


def test_export_tools_exports_the_target_only() -> None:
    """`export_tools(registry)` is `export_tool` over `registry.for_target(name)`."""
    registry = ToolRegistry()

    @registry.tool(targets=("demo",))
    def here() -> str:
        """Stays."""
        return ""

    @registry.tool(targets=("elsewhere",))
    def there() -> str:
        """Goes."""
        return ""

    integration: IntegrationBase = demo().INTEGRATION
    assert [native.name for native in integration.export_tools(registry)] == ["here"]
