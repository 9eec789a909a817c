"""What a server says of its tools: every page, in bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.inert import visible
from agent_adapter.integrations.mcp.pins import Definition

if TYPE_CHECKING:
    from mcp_types import Tool

MOST_PAGES = 100
MOST_TOOLS = 10_000


async def definitions_of(client: Any) -> list[Definition]:
    """All tools that the server lists now, past any cache.

    Raises `IntegrationError` for a list without end: a cursor that comes again, or more than
    `MOST_PAGES` pages or `MOST_TOOLS` tools.
    """
    found: list[Definition] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        found += [definition_of(tool) for tool in page.tools]
        cursor = page.next_cursor
        if len(found) > MOST_TOOLS:
            raise IntegrationError(f"the MCP server lists more than {MOST_TOOLS:,} tools")
        if not cursor:
            return found
        if cursor in seen:
            raise IntegrationError(
                f"the MCP server's list of tools has no end: its cursor {visible(cursor[:80])!r} "
                "came twice; the server has to be mended"
            )
        seen.add(cursor)
    raise IntegrationError(f"the MCP server lists its tools on more than {MOST_PAGES} pages")


def definition_of(tool: Tool) -> Definition:
    """What the server says of one tool."""
    hints = tool.annotations
    return Definition(
        name=tool.name,
        title=tool.title,
        description=tool.description or "",
        schema=dict(tool.input_schema),
        annotations=None
        if hints is None
        else hints.model_dump(mode="json", by_alias=True, exclude_none=True) or None,
    )


def names_of(definitions: Iterable[Definition]) -> str:
    """The tools' names for a person, with invisible characters as escapes."""
    return ", ".join(visible(definition.name) for definition in definitions) or "none"
