"""FastMCP 4: each tool as a `fastmcp.tools.Tool`, and FastMCP's own tools as specs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolDefinitionError, ToolFailed
from agent_adapter.core.names import fitting_name
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface
from agent_adapter.integrations.wires.mcp import (
    answered,
    bind,
    lasts,
    new_session_id,
    principal_of,
    session_of,
)
from agent_adapter.integrations.wires.mcp_content import value_of

if TYPE_CHECKING:
    from fastmcp.tools import Tool


# Every name of FastMCP that this module reads; a release without one of them is refused by name.
_READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("fastmcp.exceptions", ("ToolError",)),
    ("fastmcp.server.context", ("Context.request_context",)),
    ("fastmcp.server.dependencies", ("get_access_token", "get_context")),
    ("fastmcp.tools", ("Tool.model_fields.parameters", "Tool.run", "ToolResult")),
    ("mcp.server.auth.provider", ("principal_components",)),
)


def fastmcp_tool(spec: ToolSpec, *, executor: ToolRunner | None = None) -> Tool:
    """One FastMCP tool that runs `spec` through the executor: `server.add_tool(…)`.

    Failed calls, refused ones among them, are results with `is_error`; no client can approve one.

    Raises:
        MissingDependency: FastMCP is not installed.
        IntegrationError: it is outside the supported range, or lacks a name this module reads.
    """
    _check_fastmcp()
    tool: Tool = _bridge()(spec, runner_for(executor))
    return tool


def fastmcp_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    on_error: OnError = "skip",
) -> list[Tool]:
    """One `fastmcp_tool` per tool of `registry` that is exported to `fastmcp`, in its order."""
    return exported(
        "fastmcp", registry, lambda spec: fastmcp_tool(spec, executor=executor), on_error
    )


class FastMcpIntegration(IntegrationBase):
    """FastMCP as a target: `get_integration("fastmcp")`."""

    name = "fastmcp"
    requires: tuple[str, ...] = ("fastmcp",)
    extra: str | None = "fastmcp"

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Tool:
        """The `fastmcp_tool` of `spec`."""
        return fastmcp_tool(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """A context for one request: a FastMCP `Context`; one outside of a request gets new ids."""
        request = getattr(native, "request_context", None)
        if request is None:
            return bind(new_session_id(), None, bound_by="fastmcp")
        return bind(
            session_of(request.session),
            request.request_id,
            bound_by="fastmcp",
            principal=_caller(),
            lasting=lasts(request),
        )

    def import_tool(self, native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
        """A `fastmcp.tools.Tool` as a spec; untrusted and egress unless `policy` says otherwise.

        Raises `ToolDefinitionError` for what is no such tool, and for one that needs the request
        of a client: a required `Context`, the server, the access token.
        """
        _check_fastmcp()
        from fastmcp.tools import Tool

        if not isinstance(native, Tool):
            raise ToolDefinitionError(
                f"{native!r} is no FastMCP tool; get one with server.get_tool(…), or register the "
                "function itself"
            )
        _refuse_bound(native)
        return ToolSpec.from_json_schema(
            name if name is not None else fitting_name(native.name),
            native.description or f"The FastMCP tool {native.name}.",
            native.parameters,
            _native_call(native),
            **policy,
        )


INTEGRATION = FastMcpIntegration()


@cache
def _check_fastmcp() -> None:
    check_surface("fastmcp", "fastmcp", _READS)


# What FastMCP fills in outside of a request, too.
_EVERYWHERE = ("_OptionalCurrentContext", "_CurrentHeaders")


def _refuse_bound(native: Any) -> None:
    """Refuse a tool that FastMCP can only fill in while a server handles a client's request."""
    tool = native
    while tool is not None:
        needed = _needs_request(getattr(tool, "fn", None))
        if needed is not None:
            parameter, kind = needed
            raise ToolDefinitionError(
                f"{native.name}: its parameter {parameter} is filled in by FastMCP "
                f"({kind.lstrip('_')}) while a server handles a client's request, and there is "
                "none here; make it optional (ctx: Context | None = None), or serve the tool and "
                "import it from the server with agent_adapter.integrations.mcp"
            )
        tool = getattr(tool, "parent_tool", None)


def _needs_request(fn: Any, seen: tuple[Any, ...] = ()) -> tuple[str, str] | None:
    """The parameter that only a request can fill in, and with what; also inside of `Depends`."""
    if not callable(fn) or fn in seen:
        return None
    try:
        parameters = inspect.signature(fn).parameters.items()
    except (TypeError, ValueError):
        return None
    for name, parameter in parameters:
        kind = type(parameter.default)
        if kind.__module__ == "fastmcp.server.dependencies" and kind.__name__ not in _EVERYWHERE:
            return name, kind.__name__
        inside = _needs_request(getattr(parameter.default, "factory", None), (*seen, fn))
        if inside is not None:
            return name, inside[1]
    return None


def _native_call(native: Any) -> Callable[..., Awaitable[Any]]:
    from fastmcp.exceptions import ToolError as NativeToolError

    async def call(**arguments: Any) -> Any:
        try:
            return value_of(await native.run(arguments))
        except NativeToolError as exc:
            # Its author wrote it for a model; it is no promise that nothing happened.
            raise ToolFailed(str(exc)) from exc

    return call


@cache
def _surroundings() -> tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]:
    from fastmcp.server.dependencies import get_access_token, get_context
    from mcp.server.auth.provider import principal_components

    return get_context, get_access_token, principal_components


def _caller() -> str | None:
    _, current, components = _surroundings()
    return principal_of(current(), components)


def _context() -> Any:
    try:
        return _surroundings()[0]()
    except RuntimeError:  # called outside of a server
        return None


@cache
def _bridge() -> Any:
    """The `Tool` whose entry method is ours, so that FastMCP neither checks nor converts."""
    from fastmcp.tools import Tool, ToolResult
    from pydantic import PrivateAttr

    context_of = INTEGRATION.bind_context

    class BridgeTool(Tool):
        """An exported tool; its copies share what its function closes over."""

        _call: Callable[[dict[str, Any]], Awaitable[ToolResult]] = PrivateAttr()

        def __init__(self, spec: ToolSpec, runner: ToolRunner) -> None:
            super().__init__(
                name=spec.name, description=spec.description, parameters=spec.json_schema()
            )

            async def call(arguments: dict[str, Any]) -> ToolResult:
                answer = await answered(runner, spec, arguments, context_of(_context()))
                return ToolResult(
                    content=answer.blocks,
                    structured_content=answer.structured,
                    meta=answer.meta,
                    is_error=answer.is_error,
                )

            self._call = call

        async def run(self, arguments: dict[str, Any]) -> ToolResult:
            """Run one call; a result, whatever came of it."""
            return await self._call(arguments)

    return BridgeTool
