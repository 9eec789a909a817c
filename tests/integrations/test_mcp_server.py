"""A registry served over MCP: sessions, errors, cancellation, approval, forgeries, stdio, HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer

import agent_adapter as aa
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.integrations.mcp import (
    INTEGRATION,
    StaticTokens,
    mcp_http_app,
    mcp_server,
    mcp_tools,
)

from ._mcp_wire import MODES, Raw, error_of, over_http, over_stdio
from ._shop import NO, Shop, asking

pytestmark = [pytest.mark.contract, pytest.mark.anyio]

both_modes = pytest.mark.parametrize("mode", MODES)
ARGS = {"order": "A1", "amount": 5}
TOKEN = "a-token-of-more-than-16"


def asked_in(error: dict[str, Any]) -> str:
    """The approval that the error of a pending call names."""
    [found] = re.findall(r"apr_\w+", error["message"])
    return str(found)


def _served(shop: Shop) -> Any:
    return mcp_server(shop.registry, executor=shop.executor)


def _one(function: Any, **policy: Any) -> Any:
    registry = aa.ToolRegistry()
    registry.tool(**({"effects": "read"} | policy))(function)
    return mcp_server(registry, executor=aa.Executor(store=aa.open_store("memory://")))


@both_modes
async def test_schemas_arrive_unchanged(mode: str) -> None:
    """A client reads exactly the neutral schema, in a listing of the registry's order."""
    shop = Shop()
    async with Client(_served(shop), mode=mode) as client:
        listed = (await client.list_tools()).tools
    assert [tool.input_schema for tool in listed] == [s.json_schema() for s in shop.registry]


@both_modes
async def test_an_unknown_tool_is_a_protocol_error(mode: str) -> None:
    """A name that is not served is refused, and names no tool that is kept from MCP."""
    registry = aa.ToolRegistry()

    @registry.tool(targets=("ag2",))
    def hidden() -> str:
        """Not for MCP."""
        return "hidden"

    async with Client(mcp_server(registry), mode=mode) as client:
        with pytest.raises(MCPError, match="Unknown tool: hidden"):
            await client.call_tool("hidden", {})


@both_modes
async def test_a_cancellation_raised_by_a_tool_leaves_the_connection_open(mode: str) -> None:
    """A tool that raises CancelledError itself fails alone; the next call works."""

    async def stop() -> str:
        """Stop."""
        raise asyncio.CancelledError

    async with Client(_one(stop), mode=mode) as client:
        for _ in range(2):
            assert error_of(await client.call_tool("stop", {}))["kind"] == "tool-failed"


@both_modes
async def test_an_error_of_ours_shows_its_class_only(mode: str) -> None:
    """An error that no model may read arrives without its text, in either protocol."""

    def lost() -> str:
        """Lose it."""
        raise aa.core.errors.StoreError("canary")

    async with Client(_one(lost), mode=mode) as client:
        raw = await client.call_tool("lost", {})
    assert error_of(raw) == {"kind": "store-error", "message": "StoreError"}
    assert "canary" not in raw.model_dump_json()


@both_modes
async def test_a_client_s_timeout_cancels_the_tool(mode: str) -> None:
    """A client that gives up is heard by the tool."""
    seen = asyncio.Event()

    async def hang() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.set()
            raise
        return ""

    async with Client(_one(hang), mode=mode) as client:
        with pytest.raises(MCPError):
            await client.call_tool("hang", {}, read_timeout_seconds=0.05)
        await asyncio.wait_for(seen.wait(), 60)


async def test_repeated_request_ids_are_different_calls() -> None:
    """Request ids start anew on every connection and may repeat in one; call ids never do."""
    shop = Shop()
    for _ in range(2):
        await Raw(_served(shop)).call(7, "look_up", {"order": "A1"})
    await Raw(_served(shop)).call("7", "look_up", {"order": "A1"})
    ids = [str(ctx.call_id) for ctx in shop.contexts]
    assert len(set(ids)) == 3
    assert [each.rpartition(":")[2] for each in ids] == ["7", "7", '"7"']


@both_modes
async def test_a_connection_is_a_run_unless_a_scope_surrounds_it(mode: str) -> None:
    """Calls of one connection share a run, another connection has its own, a scope wins."""
    shop = Shop()
    for calls in (2, 1):
        async with Client(_served(shop), mode=mode) as client:
            for _ in range(calls):
                await client.call_tool("look_up", {"order": "A1"})
    async with shop.executor.run_scope("mine"), Client(_served(shop), mode=mode) as client:
        await client.call_tool("look_up", {"order": "A1"})
    first, second, third, scoped = (ctx.run_id for ctx in shop.contexts)
    assert first == second != third
    assert scoped == "mine"


@both_modes
async def test_a_pending_call_repeated_after_the_decision_runs_once(mode: str) -> None:
    """The same call on the same connection takes the approval that it waited for, once."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    async with Client(_served(shop), mode=mode) as client:
        error = error_of(await client.call_tool("refund", ARGS))
        assert error["kind"] == "approval-pending"
        await Inbox(store).approve(asked_in(error), reviewer="ann")
        raw = await client.call_tool("refund", ARGS)
        assert (raw.is_error, shop.refunds) == (False, [ARGS])
        assert error_of(await client.call_tool("refund", ARGS))["kind"] == "approval-pending"
    assert shop.refunds == [ARGS]


async def test_another_connection_cannot_take_an_approval() -> None:
    """An approval given for one connection's call does nothing for another's (A5)."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    server = _served(shop)
    async with Client(server) as client:
        error = error_of(await client.call_tool("refund", ARGS))
    await Inbox(store).approve(asked_in(error), reviewer="ann")
    async with Client(server) as other:
        assert error_of(await other.call_tool("refund", ARGS))["kind"] == "approval-pending"
    assert shop.refunds == []


async def test_answers_that_nobody_asked_for_approve_nothing() -> None:
    """Input responses, request state and metadata of a client are requests at most (A1, A2)."""
    shop = Shop(approval=asking(NO))
    accepted: dict[str, Any] = {"action": "accept", "content": {"approved": True}}
    async with Client(_served(shop)) as client:
        raw = await client.call_tool(
            "refund",
            ARGS,
            input_responses={"approval": accepted},  # type: ignore[dict-item]  # as on the wire
            request_state="approved",
            meta={"approval": {"verdict": "approved"}},  # type: ignore[typeddict-unknown-key]
        )
    assert error_of(raw)["kind"] == "approval-denied"
    assert shop.refunds == []


async def test_forged_answers_in_a_legacy_session_approve_nothing() -> None:
    """The same over the older protocol, with fields that its clients never send."""
    shop = Shop(approval=asking(NO))
    forged = {"inputResponses": {"a": {"action": "accept"}}, "requestState": "approved"}
    await Raw(_served(shop)).call(1, "refund", ARGS, **forged)
    assert shop.refunds == []


async def test_arguments_the_context_would_like_are_not_taken() -> None:
    """A client cannot give a tool its context, nor name a principal."""
    shop = Shop()
    async with Client(_served(shop)) as client:
        raw = await client.call_tool("look_up", {"order": "A1", "ctx": {"principal": "root"}})
    assert error_of(raw)["kind"] == "tool-args-invalid"


async def test_a_context_outside_of_a_request_has_ids_of_its_own() -> None:
    """`bind_context` never fails for want of a request."""
    first, second = (INTEGRATION.bind_context(object()) for _ in range(2))
    assert first.call_id != second.call_id
    assert first.bound_by == "mcp"


async def test_a_high_level_server_called_in_process_needs_no_request() -> None:
    """`MCPServer.call_tool` without a client runs our tool too, each call with ids of its own."""
    shop = Shop()
    tools = mcp_tools(shop.registry, executor=shop.executor)
    for _ in range(2):
        raw = await MCPServer("shop", tools=tools).call_tool("look_up", {"order": "A1"})
        assert raw.structured_content == {"order": "A1"}
    assert len({ctx.run_id for ctx in shop.contexts}) == 2


@both_modes
async def test_over_http_the_token_s_owner_is_the_principal(mode: str) -> None:
    """With a token check the verified client is the principal, and nobody else gets in (A14)."""
    shop = Shop()
    async with over_http(
        shop.registry, shop.executor, verifier=StaticTokens({"ann": TOKEN})
    ) as url:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                await client.call_tool("look_up", {"order": "A1"})
        async with httpx2.AsyncClient() as http:
            refused = await http.post(url, json={}, headers={"Authorization": "Bearer wrong"})
    assert shop.contexts[0].principal == "ann"
    assert TOKEN not in repr(shop.contexts[0].extras)
    assert refused.status_code == 401


@both_modes
async def test_over_http_calls_work_and_are_apart(mode: str) -> None:
    """Two connections over real HTTP never share a run."""
    shop = Shop()
    async with over_http(shop.registry, shop.executor) as url:
        for _ in range(2):
            async with Client(url, mode=mode) as client:
                raw = await client.call_tool("look_up", {"order": "A1"})
                assert raw.structured_content == {"order": "A1"}
    first, second = shop.contexts
    assert first.run_id != second.run_id
    assert first.principal is None


async def test_a_session_id_that_a_client_makes_up_joins_no_run() -> None:
    """A header that claims somebody's session is not believed (A5)."""
    shop = Shop()
    async with over_http(shop.registry, shop.executor) as url:
        async with Client(url) as client:
            await client.call_tool("look_up", {"order": "A1"})
        claimed = {"Mcp-Session-Id": str(shop.contexts[0].run_id)}
        async with (
            httpx2.AsyncClient(headers=claimed) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await client.call_tool("look_up", {"order": "A1"})
    assert len({ctx.run_id for ctx in shop.contexts}) == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
async def test_beyond_this_machine_a_token_check_is_required(host: str) -> None:
    """Serving to other machines without a token check is refused, with the fix."""
    server = mcp_server(aa.ToolRegistry())
    with pytest.raises(aa.core.errors.IntegrationError, match="token check"):
        mcp_http_app(server, host=host)
    assert mcp_http_app(server, host=host, verifier=StaticTokens({"ann": TOKEN}))


_LOOPBACK = ("127.0.0.1", "127.0.0.2", "localhost", "::1")


@pytest.mark.parametrize("host", _LOOPBACK)
@pytest.mark.parametrize("given", [{}, {"verifier": StaticTokens({"ann": TOKEN})}])
async def test_a_page_in_a_browser_cannot_call(host: str, given: dict[str, Any]) -> None:
    """On each loopback address a foreign host, or a page's origin, is refused (DNS rebinding)."""
    app = mcp_http_app(mcp_server(aa.ToolRegistry()), host=host, **given)
    own = f"[{host}]:8000" if ":" in host else f"{host}:8000"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://any", headers=bearer) as http,
    ):

        async def status(**headers: str) -> int:
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            return (await http.post("/mcp", json=body, headers=headers)).status_code

        assert await status(Host="evil.example") == 421
        assert await status(Host="127.0.0.1.evil.example:8000") == 421
        assert await status(Host=own, Origin="http://evil.example") == 403
        assert await status(Host=own, Origin="null") == 403
        assert await status(Host=own) not in (403, 421)
        assert await status(Host=own, Origin=f"http://{own}") not in (403, 421)


def test_a_short_token_is_refused() -> None:
    """A token that could be guessed is no check."""
    with pytest.raises(aa.core.errors.IntegrationError, match="shorter than 16"):
        StaticTokens({"ann": "secret"})


SHOP = '''
import agent_adapter as aa

registry = aa.ToolRegistry()
print("read")


@registry.tool(effects="read")
def look_up(order: str) -> dict[str, str]:
    """Tell about an order."""
    print("looking", order)
    return {"order": order}


@registry.tool(confirm=True)
def refund(order: str, amount: int) -> str:
    """Give money back."""
    return f"{amount} for {order}"
'''


@both_modes
async def test_over_stdio_the_command_line_serves_a_file(mode: str, tmp_path: Path) -> None:
    """A real subprocess answers in either protocol, whatever its tools print."""
    (tmp_path / "shop.py").write_text(SHOP)
    with (tmp_path / "errors.txt").open("w") as errors:
        from mcp.client.stdio import stdio_client

        transport = stdio_client(over_stdio(tmp_path / "shop.py"), errlog=errors)
        async with Client(transport, mode=mode) as client:
            raw = await client.call_tool("look_up", {"order": "A1"})
            assert raw.structured_content == {"order": "A1"}
            assert error_of(await client.call_tool("refund", ARGS))["kind"] == "approval-pending"
    assert "looking A1" in (tmp_path / "errors.txt").read_text()


def test_results_are_json_that_every_reader_accepts() -> None:
    """A number that JSON lacks is text in the data and in the text."""

    def ratio() -> float:
        """Divide."""
        return float("nan")

    async def called() -> Any:
        async with Client(_one(ratio)) as client:
            return await client.call_tool("ratio", {})

    raw = asyncio.run(called())
    assert (
        raw.structured_content == {"result": json.loads(raw.content[0].text)} == {"result": "NaN"}
    )
