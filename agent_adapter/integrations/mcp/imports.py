"""A server's tools as specs: untrusted, pinned, and called only as they were described."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import IntegrationError, ToolDefinitionError, ToolError
from agent_adapter.core.inert import visible
from agent_adapter.core.names import fitting_name, fitting_names, folded_name
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.mcp.connection import MCPConnection
from agent_adapter.integrations.mcp.elicitation import Ask
from agent_adapter.integrations.mcp.listing import definition_of, names_of
from agent_adapter.integrations.mcp.pins import Definition, ToolPins
from agent_adapter.integrations.quarantine import OnError, each
from agent_adapter.integrations.wires.mcp_content import value_of

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

    from agent_adapter.integrations.mcp.connection import Source

log = logging.getLogger("agent_adapter.integrations.mcp")

Pins = ToolPins | str | os.PathLike[str] | Literal[False] | None


async def import_tools(
    server: MCPConnection | Source,
    *,
    name: str = "",
    pins: Pins = None,
    prefix: str | None = None,
    only: Iterable[str] | None = None,
    ask: Ask | None = None,
    policies: Mapping[str, Mapping[str, Any]] | None = None,
    names: Mapping[str, str] | None = None,
    on_error: OnError = "skip",
    **policy: Any,
) -> list[ToolSpec]:
    """The tools of an MCP server as specs whose results are untrusted and count as sending out.

    `server` is an `MCPConnection`, which all calls share until you close it, a connected
    `mcp.Client`, or what a connection is made to while calls are under way: a URL, parameters of a
    subprocess, a server object, or a function that makes a client. `name` is what you call the
    server (an `MCPConnection` has one); it begins each tool's name unless `prefix` says otherwise.
    `policy` are fields of `ToolSpec` for all tools, `policies` for one by the server's name of it;
    a server's own hints about its tools are not believed. `ask` answers the server's questions to
    the user.

    A tool's name is kept where every provider accepts it, and mapped where one does not; `names`
    renames tools by the server's names of them. A tool that cannot be defined, and tools that
    cannot be told apart, are left out with a warning that names them; `on_error="raise"` raises
    their error instead.

    Each tool is pinned as it is described now, in `mcp.lock.json` of the working directory, or in
    `pins` (a file, or `False` for none): the first import of a server writes it, and a tool that is
    new or changed later is left out until a person accepts it. Its spec refuses a call once the
    server describes the tool otherwise.

    A call that did not reach the server ends with `ToolError`: nothing was sent. One that was sent
    and not answered is in doubt.

    Raises:
        IntegrationError: the server cannot be reached, the pins cannot be read or written, or
            `only` or `names` has a tool that is not there.
        ToolDefinitionError: with `on_error="raise"`, a tool cannot be defined.
    """
    connection = _connection(server, name, ask)
    found = await connection.tools()
    what = f"imported from {connection.name}"
    chosen = None if only is None else tuple(only)
    wanted = _selected(connection.name, found, chosen)
    wanted = each(wanted, _apart(connection.name, found), what, named=_shown, on_error=on_error)
    held = _pins(pins)
    if held is not None:
        wanted = _accepted(connection.name, wanted, held)
        connection.on_list(partial(_offer, connection.name, held, chosen))
    _selected(connection.name, found, names or {})
    called = _names(wanted, f"{connection.name}_" if prefix is None else prefix, names or {})

    def spec_of(definition: Definition) -> ToolSpec:
        options = dict(policy) | dict((policies or {}).get(definition.name, {}))
        return _Imported(connection, definition, held).spec(called[definition.name], options)

    specs = each(wanted, spec_of, what, named=_shown, on_error=on_error)
    return each(specs, _alone(specs), what, named=lambda spec: spec.name, on_error=on_error)


def _names(wanted: list[Definition], begins: str, names: Mapping[str, str]) -> dict[str, str]:
    """What each tool is called here, by the server's name of it."""
    fitting = fitting_names(begins + definition.name for definition in wanted)
    return {
        definition.name: names.get(definition.name, fitting[begins + definition.name])
        for definition in wanted
    }


def _connection(server: Any, name: str, ask: Ask | None) -> MCPConnection:
    if not isinstance(server, MCPConnection):
        if not name:
            raise IntegrationError("import_tools needs a name for the server: name='files'")
        return MCPConnection(server, name=name, ask=ask, lasting=False)
    if ask is not None:
        raise TypeError("ask= is MCPConnection's to have: MCPConnection(…, ask=…)")
    if name and name != server.name:
        raise IntegrationError(f"the connection is named {server.name!r}, not {name!r}")
    return server


def _pins(pins: Pins) -> ToolPins | None:
    if pins is False:
        return None
    if pins is None:
        return ToolPins()
    return pins if isinstance(pins, ToolPins) else ToolPins(pins)


def _shown(definition: Definition) -> str:
    return visible(definition.name)


def _accepted(server: str, wanted: list[Definition], pins: ToolPins) -> list[Definition]:
    """The tools that a person has accepted; each other one is a warning."""
    review = pins.review(server, wanted)
    for tool in review.waiting:
        log.warning("%s is not imported: %s", tool, _refusal(server, tool, "is new or changed"))
    return [definition for definition in wanted if definition.name in review.accepted]


def _offer(
    server: str, pins: ToolPins, only: tuple[str, ...] | None, found: list[Definition]
) -> None:
    """Have what a server changed while it was in use wait for a person."""
    wanted = found if only is None else [each for each in found if each.name in only]
    for tool in pins.review(server, wanted).waiting:
        log.warning("%s", _refusal(server, tool, "is new or changed"))


def _apart(server: str, found: list[Definition]) -> Callable[[Definition], Definition]:
    """Refuses a tool whose name the server lists twice, or whose schema is not JSON."""
    listed = [definition.name for definition in found]

    def checked(definition: Definition) -> Definition:
        if listed.count(definition.name) > 1:
            raise ToolDefinitionError(
                f"{server} lists two tools named {_shown(definition)!r}, so a call could reach "
                "either"
            )
        definition.as_json()  # raises for what is not JSON
        return definition

    return checked


def _alone(specs: list[ToolSpec]) -> Callable[[ToolSpec], ToolSpec]:
    """Refuses every one of the tools that a registry could not tell apart: each could be meant."""
    folded = [folded_name(spec.name) for spec in specs]

    def checked(spec: ToolSpec) -> ToolSpec:
        if folded.count(folded_name(spec.name)) > 1:
            raise ToolDefinitionError(
                f"{spec.name} cannot be told from another tool of this server; rename one with "
                "names={…}, or leave one out with only=[…]"
            )
        return spec

    return checked


async def look_at(server: Any, *, name: str = "server") -> list[Definition]:
    """What an MCP server says of its tools now; none is imported.

    A tool that it lists twice, or whose schema is no JSON, is left out with a warning.
    Raises `IntegrationError` with the server and the cause where it cannot be reached.
    """
    found = await MCPConnection(server, name=name, lasting=False).tools()
    return each(found, _apart(name, found), f"to be had from {name}", named=_shown)


def imported(client: Client, tool: Tool, called: str | None, policy: Mapping[str, Any]) -> ToolSpec:
    """One listed tool of a connected client, under the server's own name unless `called`."""
    info = getattr(client, "server_info", None)
    name = getattr(info, "name", None) or "mcp"
    connection = MCPConnection(client, name=name)
    named = called if called is not None else fitting_name(tool.name)
    return _Imported(connection, definition_of(tool), None).spec(named, policy)


def _selected(
    server: str, found: Iterable[Definition], only: Iterable[str] | None
) -> list[Definition]:
    by_name = {definition.name: definition for definition in found}
    if only is None:
        return list(by_name.values())
    wanted = list(only)
    missing = [each for each in wanted if each not in by_name]
    if missing:
        raise IntegrationError(
            f"{server} has no tool {', '.join(missing)}; it lists {names_of(by_name.values())}"
        )
    return [by_name[each] for each in wanted]


@dataclass(frozen=True, slots=True)
class _Imported:
    """One tool of a server, as it was described when it was imported."""

    connection: MCPConnection
    definition: Definition
    pins: ToolPins | None

    def spec(self, called: str, policy: Mapping[str, Any]) -> ToolSpec:
        """The tool as a spec."""
        definition, server = self.definition, self.connection.name
        described = definition.description or definition.title or ""
        return ToolSpec.from_json_schema(
            called,
            visible(described).strip() or f"The tool {_shown(definition)} of {server}.",
            definition.schema,
            self._function(),
            # What a person approves is bound to the definition they could read.
            **{"version": definition.hash[:16], **policy},
        )

    def _function(self) -> Callable[..., Awaitable[Any]]:
        """One call over the connection; nothing of the caller but the arguments is sent."""
        connection, tool, check = self.connection, self.definition.name, self._check_unchanged

        async def call(agent_adapter_context: ToolContext, **arguments: Any) -> Any:
            try:
                result = await connection.call(
                    tool, arguments, ctx=agent_adapter_context, check=check
                )
            except IntegrationError as exc:
                raise ToolError(f"nothing was sent: {exc}") from exc
            return value_of(result)

        return call

    def _check_unchanged(self, found: list[Definition]) -> None:
        server, tool, pinned = self.connection.name, self.definition.name, self.definition.hash
        now = [definition for definition in found if definition.name == tool]
        if not now:
            raise ToolError(f"the MCP server {server} no longer offers {visible(tool)}")
        if len(now) == 1 and now[0].hash == pinned:
            return
        if self.pins is not None:
            self.pins.offer(server, now[-1])
            raise ToolError(_refusal(server, tool, "has changed since it was imported"))
        raise ToolError(
            f"{server}/{visible(tool)} has changed since it was imported and was not called; "
            "a person has to look at it and import it again"
        )


def _refusal(server: str, tool: str, what: str) -> str:
    named = f"{server}/{visible(tool)}"
    return (
        f"{named} {what}; a person has to run: agent-adapter mcp accept {named}, "
        "and the program has to import it again"
    )
