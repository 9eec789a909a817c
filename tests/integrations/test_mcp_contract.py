"""MCP passes the contract kit: both protocols, and the SDK's high-level server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client
from mcp.server.mcpserver import MCPServer

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.mcp import mcp_server, mcp_tool

from ._mcp_wire import text_of
from .kit import contract_tests

pytestmark = pytest.mark.contract


class _Native:
    """One tool's server, and what it lists."""

    def __init__(self, server: Any, listed: Any) -> None:
        self.server = server
        self.listed = listed


class McpHarness:
    """Drives the low-level server with the SDK's client; the executor's port decides.

    C11 has no subject: nothing of a paused call is given to the client.
    """

    name = "mcp"
    mode = "2026-07-28"
    edits_supported = True
    approval = "port"
    native_call_ids = False  # the id is the connection's and the request's: both ends make it
    checks = frozenset({"C9", "C10", "C12", "C13", "C14", "C15"})

    def server(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The server of one tool."""
        registry = ToolRegistry()
        registry.add(spec)
        return mcp_server(registry, executor=executor)

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The server, and its own listing of the tool."""
        server = self.server(spec, executor)
        return _Native(server, _listing(server)[0])

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for MCP."""
        server = mcp_server(registry, executor=executor)
        return [_Native(server, tool) for tool in _listing(server)]

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One call by a client of its own."""
        async with Client(native.server, mode=self.mode) as client:
            return await client.call_tool(native.listed.name, args)

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """Several calls in flight on one connection."""
        async with Client(native.server, mode=self.mode) as client:
            running = [client.call_tool(native.listed.name, args) for _, args in calls]
            return list(await asyncio.gather(*running))

    def value(self, raw: Any) -> Any:
        """The data, or the text where there is none."""
        structured = raw.structured_content
        if structured is None:
            return text_of(raw)
        return structured["result"] if (raw.meta or {}).get("fastmcp") else structured

    def is_error(self, raw: Any) -> bool:
        """MCP marks error results."""
        return bool(getattr(raw, "is_error", False))

    def shown(self, raw: Any) -> str:
        """What a host gives its model: the text; the data says the same."""
        if raw.structured_content is not None:
            both = json.dumps(raw.structured_content, ensure_ascii=False)
            assert "canary" not in both
        return text_of(raw)

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the executor asks its port."""
        return await self.call(native, args, call_id="")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What the listing says."""
        listed = native.listed
        return listed.name, listed.description, listed.input_schema

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """MCP takes the neutral schema."""
        return spec.json_schema()


class LegacyHarness(McpHarness):
    """The same over a session that begins with a handshake."""

    mode = "legacy"


class HighLevelHarness(McpHarness):
    """Our tools in an `MCPServer`."""

    def server(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """An `MCPServer` with one tool of ours."""
        return MCPServer("shop", tools=[mcp_tool(spec, executor=executor)])


def _listing(server: Any) -> list[Any]:
    async def listed() -> list[Any]:
        async with Client(server) as client:
            return list((await client.list_tools()).tools)

    return _elsewhere(listed)


def _elsewhere(work: Any) -> Any:
    """The kit exports synchronously, from inside a running loop."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


_TESTS = (
    *contract_tests(McpHarness),
    *contract_tests(McpHarness, runner_factory=Executor),
    *contract_tests(LegacyHarness, label="legacy"),
    *contract_tests(LegacyHarness, runner_factory=Executor, label="legacy_executor"),
    *contract_tests(HighLevelHarness, label="high"),
    *contract_tests(HighLevelHarness, runner_factory=Executor, label="high_executor"),
)
globals().update((item.__name__, item) for item in _TESTS)
