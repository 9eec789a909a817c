"""MCP: which run a call belongs to, over real connections."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import agent_adapter as aa
from agent_adapter.integrations.mcp import mcp_server

from ._mcp_wire import MODES, error_of, over_http

pytestmark = [pytest.mark.contract, pytest.mark.anyio]

both_modes = pytest.mark.parametrize("mode", MODES)


class Garden:
    """An untrusted read, and a write that is asked about after one."""

    def __init__(self, **options: Any) -> None:
        self.done: list[str] = []
        self.seen: list[aa.ToolContext] = []
        self.store = aa.open_store("memory://")
        self.registry = aa.ToolRegistry()
        self.executor = aa.Executor(self.registry, store=self.store, **options)

        @self.registry.tool(effects="read", trust="untrusted")
        async def look(ctx: aa.ToolContext) -> str:
            """Read a page."""
            self.seen.append(ctx)
            return "a page"

        @self.registry.tool(confirm="tainted")
        async def water(bed: str) -> str:
            """Water a bed."""
            self.done.append(bed)
            return f"watered {bed}"


@both_modes
async def test_a_connection_in_process_is_a_run_of_new_calls(mode: str) -> None:
    """Equal calls of one connection are new calls of one run."""
    garden = Garden()
    server = mcp_server(garden.registry, executor=garden.executor)
    async with Client(server, mode=mode) as client:
        for _ in range(2):
            await client.call_tool("water", {"bed": "north"})
        await client.call_tool("look", {})
        await client.call_tool("look", {})
    first, second = (ctx.identity for ctx in garden.seen)
    assert garden.done == ["north", "north"]
    assert first.run is not None and first.run == second.run == first.conversation
    assert first.position is None


async def test_a_session_over_http_is_a_run() -> None:
    """After a handshake the server's own session holds the labels: the write asks."""
    garden = Garden()
    async with (
        over_http(garden.registry, garden.executor) as url,
        Client(url, mode="legacy") as client,
    ):
        assert not (await client.call_tool("water", {"bed": "north"})).is_error
        await client.call_tool("look", {})
        error = error_of(await client.call_tool("water", {"bed": "north"}))
    assert error["kind"] == "approval-denied" and garden.done == ["north"]
    assert garden.seen[0].identity.run is not None


@pytest.mark.parametrize("claims", [False, True])
async def test_i13_without_a_session_the_run_is_unknown(claims: bool) -> None:
    """I13: each request for itself: a tainted rule asks, whatever session a header claims."""
    garden = Garden()
    headers = {"Mcp-Session-Id": "a" * 32} if claims else {}
    async with (
        over_http(garden.registry, garden.executor) as url,
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await client.call_tool("look", {})
        error = error_of(await client.call_tool("water", {"bed": "north"}))
    assert error["kind"] == "approval-denied" and garden.done == []
    assert garden.seen[0].identity.run is None


async def test_i14_limits_without_a_session_refuse() -> None:
    """I14: a limit per run needs a run."""
    garden = Garden(limits=aa.RunLimits(max_calls=1))
    async with (
        over_http(garden.registry, garden.executor) as url,
        Client(url, mode="2026-07-28") as client,
    ):
        error = error_of(await client.call_tool("look", {}))
    assert error["kind"] == "run-unknown"
