"""FastMCP passes the contract kit, in both protocols, and runs FastMCP's tools as specs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("fastmcp")

from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError as NativeToolError
from pydantic import BaseModel

import agent_adapter as aa
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.schema.dialects import inlined
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.fastmcp import INTEGRATION, fastmcp_tool, fastmcp_tools

from ._shop import NO, Shop, asking
from .kit import contract_tests

pytestmark = [pytest.mark.contract, pytest.mark.anyio]


class FastMcpHarness:
    """Drives a `FastMCP` server with FastMCP's client; the executor's port decides.

    C11 has no subject: nothing of a paused call is given to the client.
    """

    name = "fastmcp"
    mode = "auto"
    edits_supported = True
    approval = "port"
    native_call_ids = False  # the id is the connection's and the request's: both ends make it
    checks = frozenset({"C9", "C10", "C12", "C13", "C14", "C15"})

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The tool."""
        return fastmcp_tool(spec, executor=executor)

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for FastMCP."""
        return fastmcp_tools(registry, executor=executor)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One call on a connection of its own."""
        return (await self.call_many(native, [(call_id, args)]))[0]

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """Several calls in flight on one connection."""
        async with Client(_server(native), mode=self.mode) as client:
            running = [
                client.call_tool(native.name, args, raise_on_error=False) for _, args in calls
            ]
            return list(await asyncio.gather(*running))

    def value(self, raw: Any) -> Any:
        """FastMCP's client unwraps the data; text has none."""
        if raw.structured_content is None:
            return raw.content[0].text
        return raw.data if raw.data is not None else raw.structured_content.get("result")

    def is_error(self, raw: Any) -> bool:
        """MCP marks error results."""
        return bool(getattr(raw, "is_error", False))

    def shown(self, raw: Any) -> str:
        """The text of the result."""
        text: str = raw.content[0].text
        return text

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the executor asks its port."""
        return await self.call(native, args, call_id="")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What the tool says; the server inlines references when it lists it."""
        return native.name, native.description, native.parameters

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """FastMCP takes the neutral schema."""
        return spec.json_schema()


class LegacyHarness(FastMcpHarness):
    """The same over a session that begins with a handshake."""

    mode = "legacy"


def _server(*tools: Any) -> FastMCP:
    server: FastMCP = FastMCP("shop")
    for tool in tools:
        server.add_tool(tool)
    return server


_TESTS = (
    *contract_tests(FastMcpHarness),
    *contract_tests(FastMcpHarness, runner_factory=Executor),
    *contract_tests(LegacyHarness, label="legacy"),
    *contract_tests(LegacyHarness, runner_factory=Executor, label="legacy_executor"),
)
globals().update((item.__name__, item) for item in _TESTS)


class Order(BaseModel):
    """One line."""

    item: str


async def test_the_server_lists_references_inlined() -> None:
    """A client of a FastMCP server reads our schema without references."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    def price(order: Order) -> float:
        """Say what an order costs."""
        return 1.0

    async with Client(_server(*fastmcp_tools(registry))) as client:
        (listed,) = await client.list_tools()
    assert listed.input_schema == inlined(registry.get("price").json_schema())


async def test_a_mounted_copy_runs_through_the_same_executor() -> None:
    """A tool that another server mounts under a prefix is still governed by its executor."""
    shop = Shop(approval=asking(NO))
    outer: FastMCP = FastMCP("outer")
    outer.mount(_server(*fastmcp_tools(shop.registry, executor=shop.executor)), namespace="inner")
    async with Client(outer) as client:
        raw = await client.call_tool(
            "inner_refund", {"order": "A1", "amount": 5}, raise_on_error=False
        )
    assert raw.structured_content["error"]["kind"] == "approval-denied"
    assert shop.refunds == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancellation_raised_by_a_tool_leaves_the_connection_open(mode: str) -> None:
    """A tool that raises CancelledError itself fails alone; the next call works."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    async def stop() -> str:
        """Stop."""
        raise asyncio.CancelledError

    async with Client(_server(*fastmcp_tools(registry)), mode=mode) as client:
        for _ in range(2):
            raw = await client.call_tool("stop", {}, raise_on_error=False)
            assert raw.structured_content["error"]["kind"] == "tool-failed"


async def test_repeated_request_ids_are_different_calls() -> None:
    """Request ids start anew on every connection, call ids never repeat."""
    shop = Shop()
    server = _server(*fastmcp_tools(shop.registry, executor=shop.executor))
    for _ in range(2):
        async with Client(server, mode="legacy") as client:
            await client.call_tool("look_up", {"order": "A1"})
    first, second = (ctx.call_id for ctx in shop.contexts)
    assert str(first).rpartition(":")[2] == str(second).rpartition(":")[2]
    assert first != second


async def test_a_server_called_in_process_needs_no_request() -> None:
    """`FastMCP.call_tool`, and a tool by itself, run without a client."""
    shop = Shop()
    tools = fastmcp_tools(shop.registry, executor=shop.executor)
    raw = await _server(*tools).call_tool("look_up", {"order": "A1"})
    again = await tools[1].run({"order": "A1"})
    assert raw.structured_content == again.structured_content == {"order": "A1"}
    assert len({ctx.run_id for ctx in shop.contexts}) == 2


async def test_a_native_tool_runs_under_the_executor() -> None:
    """A tool written for FastMCP becomes a spec: untrusted, egress, its value as data."""

    def repeat(word: str, times: int = 2) -> list[str]:
        """Say it again."""
        return [word] * times

    spec = INTEGRATION.import_tool(await _tool(repeat))
    assert (spec.trust, spec.egress, spec.effects) == ("untrusted", True, "write")
    executor = aa.Executor(store=aa.open_store("memory://"))
    assert await executor.run_spec(spec, {"word": "a"}) == ["a", "a"]
    with pytest.raises(aa.ToolArgsInvalid):
        await executor.run_spec(spec, {"word": 1})


async def test_a_native_tool_s_exception_keeps_its_text_to_itself() -> None:
    """What a native tool raises is named by its class; its own ToolError speaks."""

    def crash(kindly: bool) -> str:
        """Fail."""
        if kindly:
            raise NativeToolError("no such order")
        raise RuntimeError("canary")

    spec = INTEGRATION.import_tool(await _tool(crash))
    executor = aa.Executor(store=aa.open_store("memory://"))
    with pytest.raises(aa.ToolFailed) as caught:
        await executor.run_spec(spec, {"kindly": False})
    assert "canary" not in str(caught.value)
    with pytest.raises(aa.ToolFailed, match="no such order"):
        await executor.run_spec(spec, {"kindly": True})


async def _tool(function: Any) -> Any:
    server: FastMCP = FastMCP("native")
    server.tool(function)
    return await server.get_tool(function.__name__)


def test_results_say_the_same_as_text_and_as_data() -> None:
    """A list reaches FastMCP's client as data and as JSON text."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    def names() -> list[str]:
        """Name them."""
        return ["a", "b"]

    async def called() -> Any:
        async with Client(_server(*fastmcp_tools(registry))) as client:
            return await client.call_tool("names", {})

    raw = asyncio.run(called())
    assert raw.data == ["a", "b"] == json.loads(raw.content[0].text)
