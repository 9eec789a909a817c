"""A server's tools as specs: untrusted, pinned, and called only as they were described."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import IntegrationError, ToolDefinitionError, ToolError
from agent_adapter.core.names import fitting_name, fitting_names
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.approval.request import visible
from agent_adapter.integrations.mcp.pins import Definition, ToolPins
from agent_adapter.integrations.quarantine import OnError, each
from agent_adapter.integrations.requirements import check_surface
from agent_adapter.integrations.wires.mcp_content import value_of

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters
    from mcp.server import Server
    from mcp_types import Tool

log = logging.getLogger("agent_adapter.integrations.mcp")

_MOST_PAGES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationQuestion:
    """What a server asks the user while one of its tools runs; the answer goes to that server.

    It never approves a call: approvals are asked by the executor's port, before the server is
    called. `schema` describes a form's fields; `url` is a page the server wants opened instead.
    `message` is the server's text, with hidden characters made visible.
    """

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


Ask = Callable[[ElicitationQuestion], Any]
"""Answers a question with the form's fields, or `None` to decline; sync or async."""

Open = Callable[[], AbstractAsyncContextManager[Any]]


async def import_tools(
    server: Client | StdioServerParameters | Server[Any] | str | Callable[[], Client],
    *,
    name: str,
    pins: ToolPins | None = None,
    prefix: str | None = None,
    only: Iterable[str] | None = None,
    ask: Ask | None = None,
    policies: Mapping[str, Mapping[str, Any]] | None = None,
    names: Mapping[str, str] | None = None,
    on_error: OnError = "skip",
    **policy: Any,
) -> list[ToolSpec]:
    """The tools of an MCP server as specs whose results are untrusted and count as sending out.

    `server` is a connected `mcp.Client`, or what each call connects to for itself: parameters of a
    subprocess, a URL, a server object, or a function that makes a client. `name` is what you call
    the server; it begins each tool's name unless `prefix` says otherwise. `policy` are fields of
    `ToolSpec` for all tools, `policies` for one by the server's name of it; a server's own hints
    about its tools are not believed. `ask` answers the server's questions to the user.

    A tool's name is kept where every provider accepts it, and mapped where one does not; `names`
    renames tools by the server's names of them. A tool that cannot be defined is left out with a
    warning that names it; `on_error="raise"` raises its error instead.

    Each tool is pinned as it is described now: by `pins`, where a changed one is left out until a
    person accepts it, and in any case by its spec, which refuses a call once the server describes
    the tool otherwise.

    Raises:
        IntegrationError: two of the tools have one name, or `only` or `names` has one that is not
            there.
        ToolDefinitionError: with `on_error="raise"`, a tool cannot be defined.
    """
    check_surface("mcp", "mcp", (("mcp", ("Client",)),))
    if not name:
        raise IntegrationError("import_tools needs a name for the server: name='files'")
    opened = _opener(server, name, ask)
    async with opened() as client:
        found = await _definitions_of(client)
    wanted = _selected(name, found, only)
    if pins is not None:
        wanted = _accepted(name, wanted, pins)
    begins = f"{name}_" if prefix is None else prefix
    renamed = dict(names or {})
    _selected(name, found, renamed)
    fitting = fitting_names(begins + definition.name for definition in wanted)
    registry = ToolRegistry()

    def add(definition: Definition) -> ToolSpec:
        chosen = dict(policy) | dict((policies or {}).get(definition.name, {}))
        called = renamed.get(definition.name, fitting[begins + definition.name])
        spec = _spec(opened, name, called, definition, pins, chosen)
        return _added(registry, spec, name, definition)

    what = f"imported from {name}"
    return each(wanted, add, what, named=lambda tool: visible(tool.name), on_error=on_error)


def _accepted(server: str, wanted: list[Definition], pins: ToolPins) -> list[Definition]:
    """The tools that a person has accepted; each other one is a warning."""
    review = pins.review(server, wanted)
    for tool in review.waiting:
        log.warning("%s is not imported: %s", tool, _refusal(server, tool, "is new or changed"))
    return [definition for definition in wanted if definition.name in review.accepted]


def _added(registry: ToolRegistry, spec: ToolSpec, server: str, definition: Definition) -> ToolSpec:
    try:
        return registry.add(spec)
    except ToolDefinitionError as exc:
        raise IntegrationError(
            f"{server}: the tool {visible(definition.name)!r} cannot be told from another of "
            f"this server: {exc}; leave one out with only=[…]"
        ) from exc


async def look_at(server: Any) -> list[Definition]:
    """What an MCP server says of its tools now; none is imported."""
    check_surface("mcp", "mcp", (("mcp", ("Client",)),))
    async with _opener(server, "", None)() as client:
        return await _definitions_of(client)


def imported(client: Client, tool: Tool) -> ToolSpec:
    """One listed tool of a connected client, under the server's own name for it."""
    info = getattr(client, "server_info", None)
    name = getattr(info, "name", None) or "mcp"
    called = fitting_name(tool.name)
    return _spec(_opener(client, name, None), name, called, _definition(tool), None, {})


def _opener(server: Any, name: str, ask: Ask | None) -> Open:
    """How a call gets its client: the connected one as it is, else a new one for each call."""
    from mcp import Client

    if isinstance(server, Client):
        if ask is not None:
            raise TypeError(
                "ask= needs import_tools to make the client; give Client(…, elicitation_callback=) "
                "to your own, or pass the server's parameters instead of a client"
            )
        return lambda: _as_it_is(server)
    if callable(server) and not hasattr(server, "__aenter__"):
        made: Open = server
        return made
    answering = _elicitation(name, ask) if ask is not None else None
    return lambda: Client(server, elicitation_callback=answering)


@asynccontextmanager
async def _as_it_is(client: Any) -> AsyncIterator[Any]:
    yield client


async def _definitions_of(client: Any) -> list[Definition]:
    """What the server says of its tools now: all pages, past any cache."""
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        found += [_definition(tool) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise IntegrationError(f"the MCP server lists its tools on more than {_MOST_PAGES} pages")


def _definition(tool: Tool) -> Definition:
    return Definition(
        name=tool.name,
        title=tool.title,
        description=tool.description or "",
        schema=dict(tool.input_schema),
    )


def _selected(
    server: str, found: Iterable[Definition], only: Iterable[str] | None
) -> list[Definition]:
    by_name: dict[str, Definition] = {}
    for definition in found:
        if definition.name in by_name:
            raise IntegrationError(
                f"{server} lists two tools named {visible(definition.name)!r}, so a call could "
                "reach either; this server cannot be imported"
            )
        by_name[definition.name] = definition
    if only is None:
        return list(by_name.values())
    wanted = list(only)
    missing = [each for each in wanted if each not in by_name]
    if missing:
        raise IntegrationError(
            f"{server} has no tool {', '.join(missing)}; it lists {', '.join(by_name) or 'none'}"
        )
    return [by_name[each] for each in wanted]


def _spec(
    opened: Open,
    server: str,
    called: str,
    definition: Definition,
    pins: ToolPins | None,
    policy: Mapping[str, Any],
) -> ToolSpec:
    described = definition.description or definition.title or ""
    return ToolSpec.from_json_schema(
        called,
        visible(described).strip() or f"The tool {visible(definition.name)} of {server}.",
        definition.schema,
        _function(opened, server, definition, pins),
        # What a person approves is bound to the definition they could read.
        **{"version": definition.hash[:16], **policy},
    )


def _function(
    opened: Open, server: str, definition: Definition, pins: ToolPins | None
) -> Callable[..., Awaitable[Any]]:
    """One call over the connection; nothing of the caller but the arguments is sent."""
    pinned = definition.hash

    async def call(**arguments: Any) -> Any:
        result, failed = None, None
        async with opened() as client:
            try:
                await _check_unchanged(client, server, definition.name, pinned, pins)
                result = await client.call_tool(definition.name, arguments)
            except Exception as exc:
                # Raised in here it would come out in a group, by way of the client's own tasks.
                failed = exc
        if failed is not None:
            raise failed
        return value_of(result)

    return call


async def _check_unchanged(
    client: Any, server: str, tool: str, pinned: str, pins: ToolPins | None
) -> None:
    now = [each for each in await _definitions_of(client) if each.name == tool]
    if not now:
        raise ToolError(f"the MCP server {server} no longer offers {visible(tool)}")
    if len(now) == 1 and now[0].hash == pinned:
        return
    if pins is not None:
        pins.offer(server, now[-1])
        raise ToolError(_refusal(server, tool, "has changed since it was imported"))
    raise ToolError(
        f"{server}/{visible(tool)} has changed since it was imported and was not called; "
        "a person has to look at it and import it again"
    )


def _refusal(server: str, tool: str, what: str) -> str:
    named = f"{server}/{visible(tool)}"
    return f"{named} {what}; a person has to run: agent-adapter mcp accept {named}"


def _elicitation(server: str, ask: Ask) -> Any:
    from mcp_types import ElicitRequestURLParams, ElicitResult

    async def answering(context: Any, params: Any) -> ElicitResult:
        by_page = isinstance(params, ElicitRequestURLParams)
        question = ElicitationQuestion(
            server=server,
            message=visible(params.message),
            schema=None if by_page else _plain(params.requested_schema),
            url=params.url if by_page else None,
        )
        answer = ask(question)
        answer = await answer if inspect.isawaitable(answer) else answer
        if answer is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if by_page else dict(answer))

    return answering


def _plain(schema: Any) -> dict[str, Any]:
    if hasattr(schema, "model_dump"):
        plain: dict[str, Any] = schema.model_dump(mode="json", by_alias=True, exclude_none=True)
        return plain
    return dict(schema)
