"""MCP: tools of one registry behind a server; a client's model calls them, a reviewer decides.

The model is a script and the client is in process, so this runs without a key and a network:

    python examples/mcp_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client
from mcp.server import Server

import agent_adapter as aa
from agent_adapter.integrations.mcp import import_tools, mcp_server

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def find_flights(city: str) -> list[str]:
    """The flights to a city tomorrow."""
    return [f"{city}-1", f"{city}-2"]


@registry.tool(confirm=True)
def book_flight(number: str, price: float) -> str:
    """Books a flight and pays for it."""
    return f"booked {number} for {price:.2f}"


def reviewer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
    """Allow cheap flights; a real one would show `request.shown` to a person."""
    if request.arguments["price"] > 500:
        return aa.ApprovalDecision.deny(reviewer="ann", reason="more than 500 euros")
    return aa.ApprovalDecision.approve(reviewer="ann")


def build_server() -> Server[Any]:
    """An MCP server with every tool of the registry; the executor's port decides."""
    executor = aa.Executor(
        registry, approval=aa.CallbackApproval(reviewer), store=aa.open_store("memory://")
    )
    return mcp_server(registry, executor=executor, name="travel")


async def call_all(server: Server[Any], calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What the model of a client reads of each call."""
    async with Client(server) as client:
        results = [await client.call_tool(tool, arguments) for tool, arguments in calls]
    return [
        f"{'error: ' if r.is_error else ''}{getattr(r.content[0], 'text', '')}" for r in results
    ]


async def import_and_run(server: Server[Any]) -> tuple[list[str], Any]:
    """The same tools taken over by another program, and what one of them gives there."""
    # What was accepted is kept in mcp.lock.json: commit it.
    specs = await import_tools(
        server, name="travel", policies={"find_flights": {"effects": "read"}}
    )
    executor = aa.Executor(store=aa.open_store("memory://"))
    return [spec.name for spec in specs], await executor.run_spec(specs[0], {"city": "Oslo"})


SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("find_flights", {"city": "Rome"}),
    ("book_flight", {"number": "Rome-1", "price": 120.0}),
    ("book_flight", {"number": "Rome-2", "price": 900.0}),
]


async def main() -> None:
    """Play the script, then import the server's tools, and print what came of it."""
    server = build_server()
    for (tool, _), text in zip(SCRIPT, await call_all(server, SCRIPT), strict=True):
        print(f"{tool}: {text}")
    names, flights = await import_and_run(server)
    print(f"imported {', '.join(names)}: {flights}")


if __name__ == "__main__":
    asyncio.run(main())
