"""MCP: a registry as a server, a server's tools as specs that a person has accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.exec.approval.request import visible
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.mcp.imports import (
    ElicitationQuestion,
    import_tools,
    imported,
    look_at,
)
from agent_adapter.integrations.mcp.pins import ToolPins
from agent_adapter.integrations.mcp.serving import (
    StaticTokens,
    mcp_http_app,
    serve_http,
    serve_stdio,
)
from agent_adapter.integrations.requirements import check_surface
from agent_adapter.integrations.wires.mcp import (
    Answer,
    answered,
    bind,
    new_session_id,
    session_of,
)

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.server.mcpserver.tools import Tool as ServerTool
    from mcp_types import CallToolRequestParams, CallToolResult, Tool

    from agent_adapter.core.ports import ToolRunner
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec

__all__ = [
    "INTEGRATION",
    "ElicitationQuestion",
    "McpIntegration",
    "StaticTokens",
    "ToolPins",
    "import_tools",
    "look_at",
    "mcp_http_app",
    "mcp_server",
    "mcp_tool",
    "mcp_tools",
    "serve_http",
    "serve_stdio",
]

_Handler = Callable[[Any, Any], Awaitable[Any]]

# Every name of the SDK that this module reads; a release without one of them is refused by name.
_READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mcp", ("Client.call_tool", "Client.list_tools", "MCPError", "StdioServerParameters")),
    ("mcp.server", ("Server.run", "Server.streamable_http_app")),
    ("mcp.server.auth.middleware.auth_context", ("get_access_token",)),
    ("mcp.server.auth.provider", ("principal_components",)),
    ("mcp.server.mcpserver.tools", ("Tool.model_fields.fn_metadata", "Tool.run")),
    ("mcp.server.mcpserver.utilities.func_metadata", ("ArgModelBase", "FuncMetadata")),
    ("mcp_types", ("CallToolResult.model_fields.structured_content", "ListToolsResult", "Tool")),
)


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
    _check_mcp()
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
        lifespan=_connection,
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        on_call_tool=_handler(specs, runner_for(executor)),
    )


def mcp_tool(spec: ToolSpec, *, executor: ToolRunner | None = None) -> ServerTool:
    """One tool for the SDK's high-level server: `MCPServer(tools=[mcp_tool(spec)])`.

    Raises `MissingDependency` and `IntegrationError` as `mcp_server` does.
    """
    _check_mcp()
    tool: ServerTool = _bridge()(spec, runner_for(executor))
    return tool


def mcp_tools(registry: ToolRegistry, *, executor: ToolRunner | None = None) -> list[ServerTool]:
    """One `mcp_tool` per tool of `registry` that is exported to `mcp`, in its order."""
    return [mcp_tool(spec, executor=executor) for spec in registry.for_target("mcp")]


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
        request = _request_of(native)
        if request is None:
            return bind(new_session_id(), None, bound_by="mcp")
        return bind(_session_id(request), request.request_id, bound_by="mcp", principal=_caller())

    def import_tool(self, native: Any) -> ToolSpec:
        """`(client, tool)`, a tool that the connected `mcp.Client` lists, as a spec.

        Its results are untrusted, and a call is refused once the server describes it otherwise.
        """
        _check_mcp()
        client, tool = native
        return imported(client, tool)


INTEGRATION = McpIntegration()


@cache
def _check_mcp() -> None:
    check_surface("mcp", "mcp", _READS)


class _Connection:
    """What the server's lifespan gives: entered per connection, but only once for all of HTTP."""

    __slots__ = ("session",)

    def __init__(self) -> None:
        self.session = new_session_id()


@asynccontextmanager
async def _connection(server: Any) -> AsyncIterator[_Connection]:
    yield _Connection()


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
    context_of = INTEGRATION.bind_context

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
def _wire() -> Callable[[Answer], CallToolResult]:
    from mcp_types import CallToolResult, TextContent

    def wire(answer: Answer) -> CallToolResult:
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=answer.structured,
            is_error=answer.is_error,
            _meta=answer.meta,
        )

    return wire


def _request_of(native: Any) -> Any:
    """The request behind either kind of context; `None` for a call outside of a request."""
    if hasattr(native, "_request_context"):
        return native._request_context
    return native if hasattr(native, "lifespan_context") else None


def _session_id(request: Any) -> str:
    state = request.lifespan_context
    if request.request is None and isinstance(state, _Connection):
        return state.session
    return session_of(request.session)


@cache
def _tokens() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import principal_components

    return get_access_token, principal_components


def _caller() -> str | None:
    """Who the bearer token stands for, by what its verifier said; never by what a client says."""
    current, components = _tokens()
    token = current()
    if token is None:
        return None
    client, issuer, subject = components(token)
    return "|".join(filter(None, (issuer, client, subject)))


@cache
def _bridge() -> Any:
    """The `Tool` whose entry method is ours, so that the SDK neither checks nor converts."""
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata

    wire = _wire()
    context_of = INTEGRATION.bind_context

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
