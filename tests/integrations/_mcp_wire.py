"""Real MCP connections for the tests: in process, over stdio, over HTTP on this machine."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from mcp import Client, StdioServerParameters

from agent_adapter.integrations.mcp import mcp_http_app, mcp_server

MODES = ("2026-07-28", "legacy")
"""The two kinds of protocol: each request for itself, and a session after a handshake."""


def text_of(result: Any) -> str:
    """The text of a result with one block."""
    (block,) = result.content
    text: str = block.text
    return text


def error_of(result: Any) -> dict[str, str]:
    """`{"kind", "message"}` of a result that is an error."""
    assert result.is_error, result
    error: dict[str, str] = result.structured_content["error"]
    return error


@asynccontextmanager
async def served(app: Any, port: int = 0) -> AsyncIterator[str]:
    """The URL of an ASGI application on 127.0.0.1, while it is served by uvicorn."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    task = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        with suppress(asyncio.CancelledError):
            await task
        bound.close()


@asynccontextmanager
async def over_http(registry: Any, executor: Any, **options: Any) -> AsyncIterator[str]:
    """The URL of a registry's server."""
    server = mcp_server(registry, executor=executor)
    async with served(mcp_http_app(server, **options)) as url:
        yield url


def over_stdio(target: Path, *options: str) -> StdioServerParameters:
    """Our own command line, serving the registry in a file over stdio."""
    words = ["-m", "agent_adapter.cli", "mcp", "serve", str(target), *options]
    return StdioServerParameters(command=sys.executable, args=words, cwd=target.parent)


class Raw:
    """A connection on which the test chooses the request ids; for what clients never send."""

    def __init__(self, server: Any) -> None:
        self.server = server

    async def call(self, request_id: Any, name: str, arguments: Any, **params: Any) -> Any:
        """One call in a legacy session of its own; the JSON-RPC result."""
        import mcp_types as types
        from mcp.client._memory import InMemoryTransport
        from mcp.shared.message import SessionMessage

        async with InMemoryTransport(self.server) as (reading, writing):

            async def send(message: dict[str, Any]) -> None:
                wire = types.jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message})
                await writing.send(SessionMessage(wire))

            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
            }
            await send({"id": 0, "method": "initialize", "params": hello})
            await reading.receive()
            await send({"method": "notifications/initialized"})
            called = {"name": name, "arguments": arguments, **params}
            await send({"id": request_id, "method": "tools/call", "params": called})
            return (await reading.receive()).message


Connect = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def connected(server: Any, mode: str) -> AsyncIterator[Client]:
    """A client of any kind of server, in one of `MODES`."""
    async with Client(server, mode=mode) as client:
        yield client


def own_python(folder: Path, program: str) -> StdioServerParameters:
    """A subprocess that runs `program` with this Python."""
    (folder / "server.py").write_text(program)
    return StdioServerParameters(command=sys.executable, args=["server.py"], cwd=folder)
