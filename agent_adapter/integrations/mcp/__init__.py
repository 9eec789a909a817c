"""MCP: a registry as a server, a server's tools as specs that a person has accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.mcp.calls import context_of
from agent_adapter.integrations.mcp.connection import MCPConnection
from agent_adapter.integrations.mcp.elicitation import ElicitationQuestion
from agent_adapter.integrations.mcp.export import check_mcp, mcp_server, mcp_tool, mcp_tools
from agent_adapter.integrations.mcp.flights import ToolProgress
from agent_adapter.integrations.mcp.imports import import_tools, imported, look_at
from agent_adapter.integrations.mcp.pins import ToolPins
from agent_adapter.integrations.mcp.serving import (
    StaticTokens,
    mcp_http_app,
    serve_http,
    serve_stdio,
)

if TYPE_CHECKING:
    from mcp.server.mcpserver.tools import Tool as ServerTool


__all__ = [
    "INTEGRATION",
    "ElicitationQuestion",
    "MCPConnection",
    "McpIntegration",
    "StaticTokens",
    "ToolPins",
    "ToolProgress",
    "import_tools",
    "look_at",
    "mcp_http_app",
    "mcp_server",
    "mcp_tool",
    "mcp_tools",
    "serve_http",
    "serve_stdio",
]


class McpIntegration(IntegrationBase):
    """MCP as a target: `get_integration("mcp")`."""

    name = "mcp"
    requires: tuple[str, ...] = ("mcp", "mcp_types")
    extra: str | None = "mcp"

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> ServerTool:
        """The `mcp_tool` of `spec`."""
        return mcp_tool(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """A context for one request: a `ServerRequestContext`, or `MCPServer`'s `Context`."""
        return context_of(native)

    def import_tool(self, native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
        """`(client, tool)`, a tool that the connected `mcp.Client` lists, as a spec.

        Its results are untrusted, and a call is refused once the server describes it otherwise.
        """
        check_mcp()
        client, tool = native
        return imported(client, tool, name, policy)


INTEGRATION = McpIntegration()
