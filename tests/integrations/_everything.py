"""One function with every kind of argument, as each framework's own tool."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from pydantic import BaseModel

from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.discovery import get_integration

__all__ = ["EXPECTED", "SENT", "SOURCES"]


class Place(BaseModel):
    """A nested model with an optional."""

    city: str
    height: float | None = None


SENT: dict[str, Any] = {
    "text": "none",
    "count": 7,
    "ratio": 0.5,
    "flag": False,
    "mode": "slow",
    "place": {"city": "Köln", "height": 37.0},
    "places": [{"city": "Bonn"}, {"city": "true", "height": None}],
    "table": {"x": 1, "y z": 2},
    "either": "12",
    "words": ["null", ""],
    "self_id": "null",
}
"""Arguments of which each traps some framework."""

EXPECTED: dict[str, Any] = SENT | {
    "places": [{"city": "Bonn", "height": None}, {"city": "true", "height": None}],
    "few": 5,
    "maybe": None,
}
"""What the function gives for them: its arguments, typed, with their defaults."""


async def everything(
    text: str,
    count: int,
    ratio: float,
    flag: bool,
    mode: Literal["fast", "slow"],
    place: Place,
    places: list[Place],
    table: dict[str, int],
    either: int | str,
    words: list[str],
    self_id: str,
    few: int = 5,
    maybe: str | None = None,
) -> dict[str, Any]:
    """Gives back everything that it took."""
    return {
        "text": text,
        "count": count,
        "ratio": ratio,
        "flag": flag,
        "mode": mode,
        "place": _dumped(place),
        "places": [_dumped(each) for each in places],
        "table": table,
        "either": either,
        "words": words,
        "self_id": self_id,
        "few": few,
        "maybe": maybe,
    }


def _dumped(place: Any) -> Any:
    return Place.model_validate(place).model_dump()


async def everything_as_text(
    text: str,
    count: int,
    ratio: float,
    flag: bool,
    mode: Literal["fast", "slow"],
    place: Place,
    places: list[Place],
    table: dict[str, int],
    either: int | str,
    words: list[str],
    self_id: str,
    few: int = 5,
    maybe: str | None = None,
) -> str:
    """Gives back everything that it took."""
    return json.dumps(await everything(**locals()))


everything_as_text.__name__ = "everything"  # Anthropic's tools give text

Source = Callable[[], AbstractAsyncContextManager[ToolSpec]]


def _source(name: str) -> Callable[[Callable[[], Any]], Source]:
    """A framework's tool, imported."""

    def made(native: Callable[[], Any]) -> Source:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ToolSpec]:
            integration: Any = get_integration(name)
            yield integration.import_tool(native())

        return opened

    return made


@_source("ag2")
def _ag2() -> Any:
    import ag2

    return ag2.tool(everything)


@_source("agno")
def _agno() -> Any:
    from agno.tools.function import Function

    return Function.from_callable(everything)


@_source("anthropic")
def _anthropic() -> Any:
    from anthropic.lib.tools import beta_async_tool

    return beta_async_tool(everything_as_text)


@_source("autogen")
def _autogen() -> Any:
    from autogen_core.tools import FunctionTool

    return FunctionTool(everything, description="Gives back everything that it took.")


@_source("fastmcp")
def _fastmcp() -> Any:
    from fastmcp.tools import Tool

    return Tool.from_function(everything)


@_source("langchain")
def _langchain() -> Any:
    from langchain_core.tools import StructuredTool

    return StructuredTool.from_function(coroutine=everything)


@_source("langgraph")
def _langgraph() -> Any:
    from langchain_core.tools import StructuredTool

    return StructuredTool.from_function(coroutine=everything)


@_source("openai")
def _openai() -> Any:
    from openai.lib.responses_tool_runner import AsyncRegisteredFunction

    async def execute(args: Any) -> Any:
        return await everything(**args)

    spec = ToolSpec.from_function(everything)
    tool: Any = {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.json_schema(),
        "strict": False,
    }
    return AsyncRegisteredFunction(tool, execute)


@asynccontextmanager
async def _mcp() -> AsyncIterator[ToolSpec]:
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("matrix")
    server.add_tool(everything)
    integration: Any = get_integration("mcp")
    async with Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        yield integration.import_tool((client, tool))


SOURCES: dict[str, Source] = {
    "ag2": _ag2,
    "agno": _agno,
    "anthropic": _anthropic,
    "autogen": _autogen,
    "fastmcp": _fastmcp,
    "langchain": _langchain,
    "langgraph": _langgraph,
    "mcp": _mcp,
    "openai": _openai,
}
"""Every framework that has tool objects: its own tool as a spec, while it is connected."""
