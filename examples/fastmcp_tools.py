"""FastMCP: tools of one registry beside a server's own; a reviewer decides about ours.

The model is a script and the client is in process, so this runs without a key and a network:

    python examples/fastmcp_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import Client, FastMCP

import agent_adapter as aa
from agent_adapter.integrations.fastmcp import INTEGRATION, fastmcp_tools

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def room_status(room: int) -> dict[str, Any]:
    """Who is in a room, and whether its door is locked."""
    return {"room": room, "guests": 2, "locked": True}


@registry.tool(confirm=True)
def unlock(room: int) -> str:
    """Unlocks the door of a room."""
    return f"room {room} is open"


def reviewer(request: aa.ApprovalRequest) -> bool:
    """Allow the first floor; a real one would show `request.shown` to a person."""
    return int(request.arguments["room"]) < 200


def build_server() -> FastMCP:
    """A FastMCP server with a tool of its own and every tool of the registry."""
    executor = aa.Executor(
        registry, approval=aa.CallbackApproval(reviewer), store=aa.open_store("memory://")
    )
    server: FastMCP = FastMCP("hotel")

    @server.tool
    def house_rules() -> str:
        """What guests should know."""
        return "quiet after ten"

    for tool in fastmcp_tools(registry, executor=executor):
        server.add_tool(tool)
    return server


async def call_all(server: FastMCP, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What the model of a client reads of each call."""
    async with Client(server) as client:
        results = [
            await client.call_tool(tool, arguments, raise_on_error=False)
            for tool, arguments in calls
        ]
    return [str(result.content[0].text) for result in results]


SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("house_rules", {}),
    ("room_status", {"room": 101}),
    ("unlock", {"room": 101}),
    ("unlock", {"room": 202}),
]


async def main() -> None:
    """Play the script, then run the server's own tool under an executor of ours."""
    server = build_server()
    for (tool, _), text in zip(SCRIPT, await call_all(server, SCRIPT), strict=True):
        print(f"{tool}: {text}")
    spec = INTEGRATION.import_tool(await server.get_tool("house_rules"))
    executor = aa.Executor(store=aa.open_store("memory://"))
    print(f"imported {spec.name} ({spec.trust}): {await executor.run_spec(spec, {})}")


if __name__ == "__main__":
    asyncio.run(main())
