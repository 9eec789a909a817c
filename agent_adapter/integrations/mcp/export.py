"""A registry as an MCP server, and a spec as a tool of the SDK's own server."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.inert import visible
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.mcp.calls import connection, context_of
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface
from agent_adapter.integrations.wires.mcp import CallResult, answered

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.server.mcpserver.tools import Tool as ServerTool
    from mcp_types import CallToolRequestParams, CallToolResult, Tool


_Handler = Callable[[Any, Any], Awaitable[Any]]

# Every name of the SDK that this module reads; a release without one of them is refused by name.
_READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mcp", ("Client.call_tool", "Client.list_tools", "Client.listen", "MCPError")),
    ("mcp", ("StdioServerParameters.model_fields.command",)),
    ("mcp.client.stdio", ("stdio_client",)),
    ("mcp.client.streamable_http", ("streamable_http_client",)),
    ("mcp.server", ("Server.run", "Server.streamable_http_app")),
    ("mcp.server.auth.middleware.auth_context", ("get_access_token",)),
    ("mcp.server.auth.provider", ("principal_components",)),
    ("mcp.server.transport_security", ("TransportSecuritySettings",)),
    ("mcp.server.mcpserver.tools", ("Tool.model_fields.fn_metadata", "Tool.run")),
    ("mcp.server.mcpserver.utilities.func_metadata", ("ArgModelBase", "FuncMetadata")),
    ("mcp_types", ("CallToolResult.model_fields.structured_content", "ListToolsResult", "Tool")),
    ("mcp_types", ("CONNECTION_CLOSED", "ElicitResult", "ToolListChangedNotification")),
    ("mcp_types.version", ("MODERN_PROTOCOL_VERSIONS",)),
)


@cache
def check_mcp() -> None:
    """Raises `MissingDependency` or `IntegrationError` where this SDK cannot be used."""
    check_surface("mcp", "mcp", _READS)


def mcp_server(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    name: str = "agent-adapter",
    version: str = "",
    instructions: str | None = None,
) -> Server[Any]:
    """A low-level `Server` with every tool of `registry` that is exported to `mcp`.

    Clients see each schema unchanged. Failed calls, refused ones among them, are results with
    `is_error`; no client can approve a call. Serve it with `serve_stdio`, `serve_http`, or in
    process with `mcp.Client(server)`.

    Raises:
        MissingDependency: the MCP SDK is not installed.
        IntegrationError: it is outside the supported range, or lacks a name this module reads.
    """
    check_mcp()
    from mcp.server import Server
    from mcp_types import ListToolsResult

    specs = {spec.name: spec for spec in registry.for_target("mcp")}
    schemas = {tool: spec.json_schema() for tool, spec in specs.items()}
    listed = ListToolsResult(tools=[_listed(spec, schemas[spec.name]) for spec in specs.values()])

    async def list_tools(request: Any, params: Any) -> ListToolsResult:
        return listed

    return Server(
        name,
        version=version,
        instructions=instructions,
        lifespan=connection,
        on_list_tools=list_tools,
        on_call_tool=_handler(specs, runner_for(executor)),
        **_schema_lookup(Server, schemas),
    )


def _schema_lookup(server: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """How a server finds the schema of a tool, in releases of the SDK that ask for it."""
    known = inspect.signature(server).parameters
    return {"get_tool_input_schema": schemas.get} if "get_tool_input_schema" in known else {}


def mcp_tool(spec: ToolSpec, *, executor: ToolRunner | None = None) -> ServerTool:
    """One tool for the SDK's high-level server: `MCPServer(tools=[mcp_tool(spec)])`.

    Raises `MissingDependency` and `IntegrationError` as `mcp_server` does.
    """
    check_mcp()
    tool: ServerTool = _bridge()(spec, runner_for(executor))
    return tool


def mcp_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    on_error: OnError = "skip",
) -> list[ServerTool]:
    """One `mcp_tool` per tool of `registry` that is exported to `mcp`, in its order."""
    return exported("mcp", registry, lambda spec: mcp_tool(spec, executor=executor), on_error)


def _listed(spec: ToolSpec, schema: dict[str, Any]) -> Tool:
    from mcp_types import Tool, ToolAnnotations

    reads = spec.effects == "read"
    hints = ToolAnnotations(
        read_only_hint=reads,
        idempotent_hint=None if reads else spec.effects == "idempotent",
        open_world_hint=spec.egress or None,
    )
    return Tool(
        name=spec.name, description=spec.description, input_schema=schema, annotations=hints
    )


def _handler(specs: dict[str, ToolSpec], runner: ToolRunner) -> _Handler:
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS

    wire = _wire()

    async def call_tool(
        request: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        # `params.input_responses` and `params.request_state` are never read: a client may send
        # answers that nobody asked for, and none of them decides about a call.
        spec = specs.get(params.name)
        if spec is None:
            raise MCPError(
                code=INVALID_PARAMS, message=f"Unknown tool: {visible(params.name[:80])}"
            )
        return wire(await answered(runner, spec, params.arguments or {}, context_of(request)))

    return call_tool


@cache
def _wire() -> Callable[[CallResult], CallToolResult]:
    from mcp_types import CallToolResult

    def wire(answer: CallResult) -> CallToolResult:
        return CallToolResult(
            content=answer.blocks,
            structured_content=answer.structured,
            is_error=answer.is_error,
            _meta=answer.meta,
        )

    return wire


@cache
def _bridge() -> Any:
    """The `Tool` whose entry method is ours, so that the SDK neither checks nor converts."""
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata

    wire = _wire()

    class BridgeTool(Tool):
        """An exported tool; copies share what its function closes over."""

        def __init__(self, spec: ToolSpec, runner: ToolRunner) -> None:
            async def call(arguments: dict[str, Any], context: Any) -> CallToolResult:
                return wire(await answered(runner, spec, arguments, context_of(context)))

            listed = _listed(spec, spec.json_schema())
            super().__init__(
                fn=call,
                name=listed.name,
                title=None,
                description=spec.description,
                parameters=listed.input_schema,
                fn_metadata=FuncMetadata(arg_model=ArgModelBase),
                is_async=True,
                context_kwarg=None,
                annotations=listed.annotations,
            )

        async def run(
            self, arguments: dict[str, Any], context: Any, convert_result: bool = False
        ) -> Any:
            """Run one call; a `CallToolResult`, whatever came of it."""
            return await self.fn(arguments, context)

    return BridgeTool
